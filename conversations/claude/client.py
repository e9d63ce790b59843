"""The client of the Messages API: sends exactly our bytes, returns the API's own events.

The SDK provides transport, authentication and error types; its retries and redirects are off,
because the runner's retries are visible and counted, and a redirect would send the prompt to
another host. The stream is read raw and over aiohttp: the SDK's accumulating helpers re-encode and
take ten times the CPU, its default transport twice. Deadlines are ours, since a stream of pings
never ends by itself. Every failure is one of the closed set of `ModelFailed`. A failure that only
an administrator can fix is logged once as an alert, not once for each user it affects.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

import anthropic
import httpx2
from anthropic.types import ModelInfo

from conversations.agent.ports import NO_HEADERS, Head, Headers, ModelFailed, Piece
from conversations.claude.errors import (
    Breaker,
    build_failure,
    classify_error,
    classify_stream_error,
    read_retry_after,
    read_stream_error,
)
from conversations.claude.pace import pace
from conversations.claude.sse import EventReader
from conversations.claude.waits import Waits

logger = logging.getLogger("agentweb.claude")
#: Hosts that are never reached through a proxy from the environment, for a local emulator.
_HERE = ("all://127.0.0.1", "all://localhost", "all://[::1]")
_JSON = {"content-type": "application/json"}
#: The system's certificates, read once for all clients.
_TRUSTED = httpx2.create_ssl_context()
#: Bytes of a chunk behind which more may have arrived already.
_WHOLE_CHUNK = 16 * 1024
#: Longest request id that is stored.
_MOST_ID = 100
#: Alerts for an administrator, at most one in QUIET_SECONDS for each code.
alerts = logging.getLogger("agentweb.alerts")
QUIET_SECONDS = 600
#: Failures that no user can fix.
_ADMIN = frozenset({"authentication", "permission", "billing"})
#: Failures for which the API's message is recorded.
_SAID = frozenset({"invalid_request", "not_found", "signature"})
#: Beginnings of the names of errors with which no connection was made.
_UNCONNECTED = ("ClientConnector", "ClientProxyConnection", "ConnectTimeout", "ConnectionTimeout")
#: Longest message of the API that is stored.
_MOST_SAID = 500


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds to the first event, of silence (pings do not count), and for the whole attempt.

    `count` is the deadline for counting tokens, without which a call can be made, too.
    """

    first_event: float = 60
    silence: float = 90
    attempt: float = 600
    count: float = 5


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A model's facts by the API; None: not reported. `thinking`: always, adaptive or extended."""

    id: str
    window: int | None
    max_output: int | None
    lifecycle: str
    retires_at: datetime | None
    thinking: str


class Claude:
    """The client of one event loop; `base_url` may name the emulator, `now` is monotonic."""

    def __init__(
        self,
        *,
        api_key: str,
        base_url: str | None,
        deadlines: Deadlines,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.deadlines = deadlines
        self._now = now
        self._warned_at: dict[str, float] = {}
        self._breaker = Breaker(now, self._paused)
        # A line feed at the end of a key file would break the header; its error would show the key.
        self._key = api_key.strip()
        self._has_key = bool(self._key) and self._key.isascii() and self._key.isprintable()
        # No timeout of reading: each call has its own, and this one would be set at each chunk.
        connect = min(10.0, deadlines.first_event)
        timeout = httpx2.Timeout(deadlines.attempt, connect=connect, read=None)
        http = anthropic.DefaultAioHttpClient(
            follow_redirects=False, timeout=timeout, mounts=dict.fromkeys(_HERE), verify=_TRUSTED
        )
        self._client = anthropic.AsyncAnthropic(
            api_key=self._key, base_url=base_url or None, max_retries=0, http_client=http
        )

    async def stream(
        self, body: str, headers: Headers = NO_HEADERS
    ) -> AsyncGenerator[Head | Piece, None]:
        """Send the body and yield the stream's events; raises ModelFailed."""
        with self._breaker.call() as answered:
            async with aclosing(self._mapped(body, headers)) as items:
                async for item in items:
                    if isinstance(item, Piece):
                        answered()
                    yield item

    async def count(self, body: str, headers: Headers = NO_HEADERS) -> int | None:
        """Return the number of tokens of a request; None if the API does not answer in time."""
        if not self._has_key:
            return None
        try:
            async with asyncio.timeout(self.deadlines.count):
                response = await self._client.post(
                    "/v1/messages/count_tokens",
                    cast_to=httpx2.Response,
                    content=body.encode(),
                    options={"headers": {**headers, **_JSON}},
                )
            return int(response.json()["input_tokens"])
        except Exception as error:
            # The call itself will fail for the same reason and report it.
            logger.warning("a request was not counted: %s", type(error).__name__)
            return None

    async def models(self) -> tuple[ModelFacts, ...]:
        """List the models the API offers; raises ModelFailed."""
        try:
            async with asyncio.timeout(self.deadlines.first_event):
                return tuple(
                    [_read_facts(model) async for model in self._client.models.list(limit=100)]
                )
        except anthropic.APIStatusError as error:
            raise self._refused(error) from error
        except (TimeoutError, anthropic.APIConnectionError, httpx2.HTTPError) as error:
            raise build_failure("unreachable", may_retry=True) from error

    async def _mapped(self, body: str, headers: Headers) -> AsyncGenerator[Head | Piece, None]:
        if not self._has_key:
            self._alert("authentication", "ANTHROPIC_API_KEY is not the form of a key")
            raise build_failure("authentication", may_retry=False)
        try:
            async with aclosing(self._items(body, headers)) as items:
                async for item in items:
                    yield item
        except ModelFailed:
            raise
        except anthropic.APIStatusError as error:
            raise self._refused(error) from error
        except (anthropic.APITimeoutError, TimeoutError) as error:
            raise _build_unanswered("timeout", error) from error
        except anthropic.APIConnectionError as error:
            raise _build_unanswered("unreachable", error) from error
        except httpx2.HTTPError as error:
            raise _build_unanswered("cut", error) from error
        except Exception as error:
            logger.warning("the API's answer could not be read: %s", type(error).__name__)
            raise _build_unanswered("protocol_error", error) from error

    async def _items(self, body: str, headers: Headers) -> AsyncGenerator[Head | Piece, None]:
        now = asyncio.get_running_loop().time
        last, silent = now() + self.deadlines.attempt, now() + self.deadlines.first_event
        async with asyncio.timeout_at(min(last, silent)):
            response = await self._send(body, headers)
        async with aclosing(response):
            yield _read_head(response)
            reader, chunks, kind = EventReader(), _read_chunks(response), None
            with closing(Waits()) as waits:
                while True:
                    with waits.until(min(last, silent)):
                        chunk = await anext(chunks, None)
                    if chunk is None:
                        return
                    looked = now()
                    events: list[dict[str, Any]] = []
                    with _PausedReading(response):
                        try:
                            for event in reader.feed(chunk):
                                if (kind := event.get("type")) == "error":
                                    raise _map_stream_error(event, response)
                                if kind != "ping":
                                    events.append(event)
                        finally:
                            # Events before an error or malformed data are passed on.
                            if events:
                                yield Piece(tuple(events))
                                # While the caller shows them, nobody listens.
                                silent = now() + self.deadlines.silence
                        if kind == "content_block_delta" and len(chunk) < _WHOLE_CHUNK:
                            await pace.rest(looked)

    async def _send(self, body: str, headers: Headers) -> httpx2.Response:
        return await self._client.post(
            "/v1/messages",
            cast_to=httpx2.Response,
            content=body.encode(),
            options={"headers": {**headers, **_JSON}},
            stream=True,
            stream_cls=anthropic.AsyncStream[Any],
        )  # type: ignore[return-value]

    def _refused(self, error: anthropic.APIStatusError) -> ModelFailed:
        status, headers = error.status_code, error.response.headers
        # Some proxies quote a key that they reject.
        message = (error.api_message or "").replace(self._key, "[key]")[:_MOST_SAID]
        code, may_retry = classify_error(status, error.type or "", error.error_code or "", message)
        if code in _ADMIN:
            self._alert(code, f"HTTP {status}: {message}")
        return build_failure(
            code,
            may_retry=may_retry and headers.get("x-should-retry") != "false",
            detail=message if code in _SAID else "",
            http_status=status,
            request_id=(error.request_id or "")[:_MOST_ID],
            retry_after=read_retry_after(headers),
        )

    def _paused(self, cause: ModelFailed, seconds: float) -> None:
        self._alert(cause.code, f"calls pause for {seconds:g} seconds: {cause}")

    def _alert(self, code: str, text: str) -> None:
        now = self._now()
        if now - self._warned_at.get(code, now - QUIET_SECONDS) >= QUIET_SECONDS:
            self._warned_at[code] = now
            alerts.error("%s: %s", code, " ".join(text.split()))

    async def close(self) -> None:
        await self._client.close()


def _read_facts(model: ModelInfo) -> ModelFacts:
    kinds = model.capabilities.thinking.types if model.capabilities else None
    thinking = "extended"
    if kinds is not None and kinds.adaptive.supported:
        thinking = "adaptive" if kinds.disabled.supported else "always"
    sizes = model.max_input_tokens, model.max_tokens
    return ModelFacts(model.id, *sizes, model.lifecycle, model.retires_at, thinking)


def _build_unanswered(code: str, error: Exception) -> ModelFailed:
    """Build the failure of a request that the API neither answered nor refused."""
    return build_failure(code, may_retry=True, may_cost=not _is_unconnected(error))


def _is_unconnected(error: BaseException | None) -> bool:
    """Return whether no connection was made.

    By the names of the transport's errors: mapped, they are those of a connection lost later, too.
    """
    while error is not None:
        if type(error).__name__.startswith(_UNCONNECTED):
            return True
        error = error.__cause__
    return False


def _read_head(response: httpx2.Response) -> Head:
    if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        status = response.status_code
        raise build_failure("protocol_error", may_retry=False, http_status=status, may_cost=True)
    return Head(_request_id(response), response.status_code)


def _request_id(response: httpx2.Response) -> str:
    return str(response.headers.get("request-id", ""))[:_MOST_ID]


def _map_stream_error(event: dict[str, Any], response: httpx2.Response) -> ModelFailed:
    """Map an `error` event in mid-stream; its HTTP status was 200."""
    code, may_retry = classify_stream_error(event.get("error"))
    status, name = response.status_code, _request_id(response)
    api_text = read_stream_error(event.get("error"))[:_MOST_SAID] if code in _SAID else ""
    return build_failure(
        code, may_retry=may_retry, detail=api_text, http_status=status, request_id=name
    )


def _read_chunks(response: httpx2.Response) -> AsyncIterator[bytes]:
    """Return the chunks of an answer; `aiter_bytes` passes each through two layers more."""
    if response.headers.get("content-encoding", "identity") != "identity":
        return response.aiter_bytes()
    return cast("httpx2.AsyncByteStream", response.stream).__aiter__()


class _PausedReading:
    """Leaves to the kernel what arrives while nobody reads: no piece of it wakes the loop.

    The transport's own buffer would be lost with the connection, and with it what was billed. With
    TLS up to 256 KiB still go to Python's own buffer, which a connection that is reset loses.
    """

    __slots__ = ("_transport",)

    def __init__(self, response: httpx2.Response) -> None:
        self._transport = _find_transport(response)

    def __enter__(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def __exit__(self, *error: object) -> None:
        if self._transport is not None:
            self._transport.resume_reading()


def _find_transport(response: httpx2.Response) -> asyncio.ReadTransport | None:
    """Return the transport of a response; None where it has ended, or the SDK hides it."""
    stream = getattr(response.stream, "_stream", None)
    connection = getattr(getattr(stream, "_aiohttp_response", None), "connection", None)
    return getattr(connection, "transport", None)
