"""Streamable HTTP through the guarded transport: the same checks as for every page that is fetched.

The GET stream, by which a server could push messages, is not opened, so what it sends is always the
answer to a call, bounded by its deadline and size. A redirect is only followed within the same
origin, and checked like any request.

Each request has a deadline of its own for all of its answer, which passes when it is cancelled:
signs of life do not extend it, and only that request fails.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from weakref import WeakValueDictionary

import httpx2
from mcp.client import Transport
from mcp.client.streamable_http import streamable_http_client
from mcp_types import INTERNAL_ERROR

from tools.framework.errors import BodyRefusedError
from tools.framework.outside_access import WebAccess
from tools.http.transport import GuardedTransport
from tools.mcp.errors import ServerError
from tools.mcp.server import MOST_MESSAGE, Address, Lost
from tools.mcp.traffic import MOST_PARTS, Traffic

#: Seconds for a message that has no answer but a status: the library sends nothing else meanwhile.
NOTICE = 3.0
EVENTS = "text/event-stream"
#: Statuses for wrong credentials, whose body follows the protocol of these.
_DENIED = (401, 403)


class _Deadline:
    """When a request is given up; it can be brought forward while something waits for it."""

    def __init__(self, seconds: float) -> None:
        self._end = asyncio.get_running_loop().time() + seconds
        self._waiting: asyncio.Timeout | None = None

    @asynccontextmanager
    async def limit(self) -> AsyncGenerator[None]:
        """Raise TimeoutError in the block once the deadline has passed."""
        async with asyncio.timeout_at(self._end) as waiting:
            self._waiting = waiting
            try:
                yield
            finally:
                self._waiting = None

    def pass_now(self) -> None:
        self._end = asyncio.get_running_loop().time()
        if self._waiting is not None and not self._waiting.expired():
            self._waiting.reschedule(self._end)


class _WithoutPush(GuardedTransport):
    def __init__(self, access: WebAccess, patience: float, lost: Lost) -> None:
        super().__init__(access)
        self._patience, self._lost = patience, lost
        self._traffic = Traffic()
        #: those of the open requests, by their ids
        self._deadlines = WeakValueDictionary[object, _Deadline]()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return httpx2.Response(405, request=request)
        deadline = self._set_deadline(json.loads(request.content or "{}"))
        try:
            async with deadline.limit():
                response = await super().handle_async_request(request)
        except TimeoutError:
            # A status fails this request; an error would end the connection with all its calls.
            return httpx2.Response(504, request=request)
        if _is_plain_refusal(response):
            return await _name_status(request, response)
        response.stream = _Answer(response, deadline, self._traffic, self._lost)
        return response

    def _set_deadline(self, message: dict[str, Any]) -> _Deadline:
        if {"id", "method"} <= message.keys():
            deadline = self._deadlines[message["id"]] = _Deadline(self._patience)
            return deadline
        if message.get("method") == "notifications/cancelled":
            # The library would leave the cancelled request open.
            cancelled = self._deadlines.get(message["params"]["requestId"])
            if cancelled is not None:
                cancelled.pass_now()
        return _Deadline(NOTICE)


def _is_plain_refusal(response: httpx2.Response) -> bool:
    """Return whether the status of an answer alone says what is wrong.

    404 means the end of a session to the library.
    """
    if response.status_code < 400 or response.status_code == 404:
        return False
    kind = response.headers.get("content-type", "").lower()
    return response.status_code in _DENIED or not kind.startswith("application/json")


async def _name_status(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    """Return the error of the protocol that names the status, which the library would not."""
    await response.aclose()
    error = {"code": INTERNAL_ERROR, "message": f"HTTP status {response.status_code}"}
    answer = {"jsonrpc": "2.0", "id": None, "error": error}
    return httpx2.Response(response.status_code, json=answer, request=request)


class _Answer(httpx2.AsyncByteStream):
    """The body of an answer, message by message, each counted before the library reads it.

    After the deadline it raises StreamError, which fails only its request. ServerError and
    BodyRefusedError are the end of the connection: `lost` has been called with the reason.
    """

    def __init__(
        self, response: httpx2.Response, deadline: _Deadline, traffic: Traffic, lost: Lost
    ) -> None:
        assert isinstance(response.stream, httpx2.AsyncByteStream)  # noqa: S101 - it has just come
        self._body, self._deadline = response.stream, deadline
        self._traffic, self._lost = traffic, lost
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        self._is_events = kind == EVENTS
        if self._is_events:
            # Without the name of an encoding: the events are written anew, in UTF-8.
            response.headers["content-type"] = EVENTS

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            if self._is_events:
                async for event in httpx2.EventSource(self._plain(), MOST_MESSAGE):
                    data = event.data.replace("\n", " ").encode()
                    self._traffic.check_message(data)
                    if event.event == "message":
                        # Without its id: nothing could be resumed without the GET stream.
                        yield b"data: " + data + b"\n\n"
            else:
                text = b"".join([piece async for piece in self._read()])
                self._traffic.check_message(text)
                yield text
        except (ServerError, BodyRefusedError) as error:
            self._lost(str(error), "")
            raise

    def _plain(self) -> httpx2.Response:
        """Return the events as an answer of their own, in UTF-8."""
        kind, post = {"content-type": EVENTS}, httpx2.Request("POST", "")
        return httpx2.Response(200, headers=kind, content=self._read_lines(), request=post)

    async def _read_lines(self) -> AsyncIterator[bytes]:
        lines = 0
        async for piece in self._read():
            lines += piece.count(b"\n") + piece.count(b"\r")
            if lines > MOST_PARTS:
                raise ServerError(f"It sent an answer of more than {MOST_PARTS:,} lines.")
            yield piece

    async def aclose(self) -> None:
        await self._body.aclose()

    async def _read(self) -> AsyncIterator[bytes]:
        pieces = aiter(self._body)
        while True:
            try:
                # Not around the yield: the time of the reader is its own.
                async with self._deadline.limit():
                    piece = await anext(pieces, None)
            except TimeoutError as error:
                raise httpx2.StreamError("The answer took too long.") from error
            if piece is None:
                return
            yield piece


@asynccontextmanager
async def _open_streams(endpoint: Address, patience: float, lost: Lost) -> AsyncGenerator[object]:
    access = replace(endpoint.access, max_bytes=MOST_MESSAGE)
    client = httpx2.AsyncClient(
        transport=_WithoutPush(access, patience, lost),
        headers=dict(endpoint.headers),
        timeout=None,
        trust_env=False,
        follow_redirects=False,
    )
    async with (
        client,
        streamable_http_client(
            endpoint.url, http_client=client, max_sse_event_size=MOST_MESSAGE
        ) as streams,
    ):
        yield streams


def connect_http(endpoint: Address, patience: float, lost: Lost) -> Transport:
    """Return the client's transport; `patience` is the seconds until a request is given up.

    `lost` is called with the reason once the server has broken a rule.
    """
    return _open_streams(endpoint, patience, lost)  # type: ignore[return-value]
