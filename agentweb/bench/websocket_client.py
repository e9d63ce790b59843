"""A WebSocket client for load, faults and attacks: the protocol of `websockets` on raw asyncio.

The library's protocol without its transport, because a message goes to a callback the moment it is
complete, without a task in between, and because a client here does what no browser does: it stops
reading, resets the connection, sends frames that break the rules.

What it costs, because a reader must not disturb what it measures: `bench stream --conversations 50`
takes 19 ms of its processor per 1,000 deltas, with a parser of our own 16 ms. Per 1,000 frames with
nothing else, 50 sockets: 40 ms as with our own parser, 66 ms with the library's asyncio client, 49
ms with aiohttp's.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Mapping
from typing import cast
from urllib.parse import urlsplit

from websockets.client import ClientProtocol
from websockets.frames import Close, Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import State
from websockets.uri import parse_uri

TEXT, BINARY, CLOSE, PING, PONG = Opcode.TEXT, Opcode.BINARY, Opcode.CLOSE, Opcode.PING, Opcode.PONG
#: `Closed.code` of a connection that ended without a closing frame.
ABNORMAL = 1006
_DATA = (Opcode.TEXT, Opcode.CONT, Opcode.BINARY)


class Refused(ConnectionError):
    """The handshake got another status than 101."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status


class Closed(ConnectionError):
    """The socket is closed."""

    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(f"{code} {reason}".strip())
        self.code, self.reason = code, reason


class Socket(asyncio.Protocol):
    """An open socket, made by `connect`."""

    def __init__(
        self,
        protocol: ClientProtocol,
        headers: Mapping[str, str],
        take: Callable[[str], None] | None,
    ) -> None:
        #: Why it ended; None while it is open.
        self.closed: Closed | None = None
        self.messages = 0
        self.transport: asyncio.Transport
        self._protocol, self._headers, self._take = protocol, headers, take
        self._parts: list[bytes] = []
        self._waiting: deque[str] = deque()
        self._changed = asyncio.Event()
        self._response: Response | None = None

    async def read(self, seconds: float | None = 30) -> str:
        """Return the next message; raises Closed, or TimeoutError."""
        async with asyncio.timeout(seconds):
            while not self._waiting:
                if self.closed is not None:
                    raise self.closed
                await self._wait()
        return self._waiting.popleft()

    async def wait_closed(self, seconds: float = 30) -> Closed:
        """Wait for the end and return its reason; raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while self.closed is None:
                await self._wait()
        return self.closed

    async def wait_opened(self) -> None:
        """Wait for the response to the handshake; raises Refused or Closed."""
        while self._response is None:
            if self.closed is not None:
                raise self.closed
            await self._wait()
        if self._protocol.handshake_exc is not None:
            self.transport.abort()
            raise Refused(self._response.status_code)

    def send(self, text: str) -> None:
        self.send_frame(TEXT, text.encode())

    def send_frame(self, kind: int, data: bytes = b"", *, is_last: bool = True) -> None:
        """Send any frame, also a fragment or one that no browser would send, in any state."""
        frame = Frame(Opcode(kind), data, fin=is_last)
        self.transport.write(frame.serialize(mask=True))

    async def close(self, code: int = 1000) -> None:
        """Close as a page does when it is left."""
        if self.closed is None:
            self.transport.resume_reading()
            if self._protocol.state is State.OPEN:
                self._protocol.send_close(code)
            self._flush()
            try:
                await self.wait_closed(5)
            except TimeoutError:
                self.abort()

    def abort(self) -> None:
        """End as a machine does that loses its network: a reset without a closing frame."""
        self.transport.abort()

    def stop_reading(self) -> None:
        """Stop reading, as a slow client: incoming data fills the buffers of both sides."""
        self.transport.pause_reading()

    def resume_reading(self) -> None:
        self.transport.resume_reading()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        request = self._protocol.connect()
        for name, value in self._headers.items():
            # Replaces the protocol's own header, so that a client can pretend to be another.
            request.headers.pop(name, None)
            request.headers[name] = value
        self._protocol.send_request(request)
        self._flush()

    def data_received(self, data: bytes) -> None:
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if isinstance(event, Response):
                self._response = event
                self._changed.set()
            elif isinstance(event, Frame) and event.opcode in _DATA:
                self._parts.append(bytes(event.data))
                if event.fin:
                    text, self._parts = b"".join(self._parts), []
                    self._deliver(text.decode("utf-8", "replace"))
        self._flush()
        if self._protocol.close_rcvd is not None:
            self._end(self._protocol.close_rcvd)
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(Close(ABNORMAL, str(exc or "")))

    async def _wait(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _flush(self) -> None:
        """Send what the protocol has queued: the request, pongs, the answer to a closing frame."""
        for data in self._protocol.data_to_send():
            if data:
                self.transport.write(data)

    def _deliver(self, text: str) -> None:
        self.messages += 1
        if self._take is not None:
            self._take(text)
        else:
            self._waiting.append(text)
            self._changed.set()

    def _end(self, close: Close) -> None:
        self.closed = self.closed or Closed(close.code, close.reason)
        self._changed.set()


async def connect(
    url: str,
    *,
    cookies: Mapping[str, str] | None = None,
    origin: str | None = "",
    headers: Mapping[str, str] | None = None,
    take: Callable[[str], None] | None = None,
    receive_buffer: int = 0,
    seconds: float = 30,
) -> Socket:
    """Open a socket at ws://host:port/path; raises Refused, Closed, OSError or TimeoutError.

    Messages go to `take`, or are queued for `read`. `origin` defaults to that of the URL; None
    sends none. A small `receive_buffer` makes a client that stops reading noticeable sooner.
    """
    parts = urlsplit(url)
    sent = dict(headers or {})
    if origin is not None:
        sent.setdefault("Origin", origin or f"http://{parts.netloc}")
    if cookies:
        sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())
    protocol = ClientProtocol(parse_uri(url), max_size=None)
    async with asyncio.timeout(seconds):
        peer = await _connect_peer(parts.hostname or "", parts.port or 80, receive_buffer)
        loop = asyncio.get_running_loop()
        _, made = await loop.create_connection(lambda: Socket(protocol, sent, take), sock=peer)
        try:
            await made.wait_opened()
        except BaseException:
            made.abort()
            raise
    return made


async def _connect_peer(host: str, port: int, receive_buffer: int) -> socket.socket:
    peer = socket.socket()
    try:
        peer.setblocking(False)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if receive_buffer:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        await asyncio.get_running_loop().sock_connect(peer, (host, port))
    except BaseException:
        peer.close()
        raise
    return peer
