"""The one door to the Messages API: exactly our bytes out, the API's own events in.

The SDK gives transport, authentication and error types; it neither retries nor follows redirects
here, because the runner's retries are visible and counted, and a redirect would take the prompt to
another host. The stream is read raw: the SDK's accumulating helpers re-encode and cost ten times
the CPU. Deadlines are ours, since a stream of pings never ends by itself. Whatever goes wrong is
one of the closed set of `ModelFailed`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import anthropic
import httpx2

from conversations.context.errors import WireError
from conversations.ports import Head, ModelFailed, Piece
from conversations.sse import EventReader

#: By error type, where the API gives one: our code, and whether another attempt may help.
_TYPES: dict[str, tuple[str, bool]] = {
    "overloaded_error": ("overloaded", True),
    "rate_limit_error": ("rate_limited", True),
    "api_error": ("upstream", True),
    "timeout_error": ("upstream", True),
    "conflict_error": ("upstream", True),
    "authentication_error": ("authentication", False),
    "permission_error": ("permission", False),
    "billing_error": ("billing", False),
    "not_found_error": ("not_found", False),
    "request_too_large": ("overflow", False),
}
_STATUSES: dict[int, tuple[str, bool]] = {
    401: ("authentication", False),
    402: ("billing", False),
    403: ("permission", False),
    404: ("not_found", False),
    408: ("upstream", True),
    409: ("upstream", True),
    413: ("overflow", False),
    429: ("rate_limited", True),
    529: ("overloaded", True),
}
_WORDS = {
    "overloaded": "The model is overloaded.",
    "rate_limited": "The rate limit of the API is reached.",
    "upstream": "The API failed.",
    "unreachable": "The API cannot be reached.",
    "timeout": "The API did not answer in time.",
    "cut": "The connection to the API was cut.",
    "protocol_error": "The API sent something that is no answer.",
    "overflow": "The request is too long for the model.",
    "invalid_request": "The API refused the request.",
    "authentication": "The API key is not accepted; an administrator must check it.",
    "permission": "The API key may not do this; an administrator must check it.",
    "billing": "The API account cannot pay; an administrator must check it.",
    "not_found": "The API does not know this model; an administrator must check AGENTWEB_MODEL.",
}


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds until the first event, of silence (pings do not count), and for the whole attempt."""

    first_event: float = 60
    silence: float = 90
    attempt: float = 600


class Claude:
    """A client of one loop; `base_url` may name the emulator."""

    def __init__(self, *, api_key: str, base_url: str | None, deadlines: Deadlines) -> None:
        self.deadlines = deadlines
        timeout = httpx2.Timeout(deadlines.attempt, connect=10)
        self._client = anthropic.AsyncAnthropic(
            api_key=api_key,
            base_url=base_url or None,
            max_retries=0,
            timeout=timeout,
            http_client=anthropic.DefaultAsyncHttpxClient(follow_redirects=False, timeout=timeout),
        )

    async def stream(self, body: str) -> AsyncGenerator[Head | Piece, None]:
        """Send the body and give the stream's events; raises ModelFailed."""
        started = time.monotonic()
        last = started + self.deadlines.attempt
        try:
            async with asyncio.timeout_at(
                _loop_time(min(last, started + self.deadlines.first_event))
            ):
                response = await self._send(body)
            try:
                async for item in self._read(response, started, last):
                    yield item
            finally:
                await response.aclose()
        except ModelFailed:
            raise
        except anthropic.APIStatusError as error:
            raise _refused(error) from error
        except (anthropic.APITimeoutError, TimeoutError) as error:
            raise failed("timeout", may_retry=True) from error
        except anthropic.APIConnectionError as error:
            raise failed("unreachable", may_retry=True) from error
        except httpx2.HTTPError as error:
            raise failed("cut", may_retry=True) from error
        except (WireError, anthropic.AnthropicError) as error:
            raise failed("protocol_error", may_retry=True) from error

    async def _send(self, body: str) -> httpx2.Response:
        return await self._client.post(
            "/v1/messages",
            cast_to=httpx2.Response,
            content=body.encode(),
            options={"headers": {"content-type": "application/json"}},
            stream=True,
            stream_cls=anthropic.AsyncStream[Any],
        )  # type: ignore[return-value]

    async def _read(
        self, response: httpx2.Response, started: float, last: float
    ) -> AsyncGenerator[Head | Piece, None]:
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            raise failed("protocol_error", may_retry=False, http_status=response.status_code)
        yield Head(response.headers.get("request-id", ""), response.status_code)
        reader, chunks = EventReader(), response.aiter_bytes()
        silent = started + self.deadlines.first_event
        while True:
            async with asyncio.timeout_at(_loop_time(min(last, silent))):
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            for event in reader.feed(chunk):
                kind = event.get("type")
                if kind == "error":
                    raise _broke(event, response)
                if kind != "ping":
                    silent = time.monotonic() + self.deadlines.silence
                    yield Piece(event)

    async def close(self) -> None:
        await self._client.close()


def _loop_time(monotonic: float) -> float:
    return asyncio.get_running_loop().time() + monotonic - time.monotonic()


def failed(code: str, *, may_retry: bool, detail: str = "", **facts: Any) -> ModelFailed:
    """Make a failure with the words for its code, and the API's own where they help."""
    text = _WORDS[code] + (f" It said: {detail}" if detail else "")
    return ModelFailed(code, text, may_retry=may_retry, **facts)


def _broke(event: dict[str, Any], response: httpx2.Response) -> ModelFailed:
    """Map an `error` event in mid-stream; its HTTP status was 200."""
    error = event.get("error")
    kind = str(error.get("type")) if isinstance(error, dict) else ""
    code, may_retry = _TYPES.get(kind, ("upstream", True))
    return failed(code, may_retry=may_retry, request_id=response.headers.get("request-id", ""))


def _refused(error: anthropic.APIStatusError) -> ModelFailed:
    facts = {"http_status": error.status_code, "request_id": error.request_id or ""}
    message = (error.api_message or "")[:500]
    if error.status_code < 400:
        return failed("protocol_error", may_retry=False, **facts)
    found = _TYPES.get(error.type or "") or _STATUSES.get(error.status_code)
    if found is None:
        found = ("upstream", True) if error.status_code >= 500 else ("invalid_request", False)
    code, may_retry = found
    if code == "invalid_request" and _is_overflow(message):
        code = "overflow"
    if code == "rate_limited" and error.error_code == "enforced_spend_limit_reached":
        code, may_retry = "billing", False
    shown = message if code in {"invalid_request", "not_found"} else ""
    return failed(code, may_retry=may_retry, detail=shown, retry_after=_retry_after(error), **facts)


def _is_overflow(message: str) -> bool:
    # The API gives this case no code of its own.
    return "prompt is too long" in message or "exceed context limit" in message


def _retry_after(error: anthropic.APIStatusError) -> float | None:
    try:
        seconds = float(error.response.headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds < 1e7 else None
