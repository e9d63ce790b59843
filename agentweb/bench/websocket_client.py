"""A WebSocket client over raw asyncio, as small as it can be: for load, faults and attacks.

It answers pings like a browser, says who it is by cookies and Origin, and can do what no browser
does: stop reading, reset the connection, send frames that break the protocol. A message goes to
`took` the moment it is whole, without a task in between, or waits for `read`.
"""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import struct
from collections import deque
from collections.abc import Callable, Mapping
from typing import cast
from urllib.parse import urlsplit

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
#: What `Closed.code` says when the connection ended without a closing frame.
ABNORMAL = 1006


class Refused(ConnectionError):
    """The handshake was answered, but not by 101."""

    def __init__(self, status: int, head: str) -> None:
        super().__init__(f"HTTP {status}")
        self.status, self.head = status, head


class Closed(ConnectionError):
    """The socket is over."""

    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(f"{code} {reason}".strip())
        self.code, self.reason = code, reason


class Socket(asyncio.Protocol):
    """An open socket; `connect` makes it."""

    def __init__(self, took: Callable[[str], None] | None = None) -> None:
        self.took = took
        #: What ended it; None while it is open.
        self.closed: Closed | None = None
        self.pings = self.messages = self.bytes = 0
        #: False for a client that is not there any more although its connection is.
        self.answers_pings = True
        self.transport: asyncio.Transport
        self._buffer = bytearray()
        self._parts: list[bytes] = []
        self._waiting: deque[str] = deque()
        self._changed = asyncio.Event()
        self._head: str | None = None

    async def read(self, seconds: float = 30) -> str:
        """Give the next message; raises Closed, or TimeoutError."""
        async with asyncio.timeout(seconds):
            while not self._waiting:
                if self.closed is not None:
                    raise self.closed
                self._changed.clear()
                await self._changed.wait()
        return self._waiting.popleft()

    async def ended(self, seconds: float = 30) -> Closed:
        """Wait for the end and say what it was."""
        async with asyncio.timeout(seconds):
            while self.closed is None:
                self._changed.clear()
                await self._changed.wait()
        return self.closed

    def send(self, text: str) -> None:
        self.send_frame(TEXT, text.encode())

    def send_frame(
        self, kind: int, data: bytes = b"", *, is_last: bool = True, reserved: int = 0
    ) -> None:
        """Send any frame, a fragment or one that no browser would send."""
        size = len(data)
        head = bytes([(0x80 if is_last else 0) | reserved << 4 | kind])
        if size < 126:
            head += bytes([0x80 | size])
        elif size < 65_536:
            head += struct.pack("!BH", 0x80 | 126, size)
        else:
            head += struct.pack("!BQ", 0x80 | 127, size)
        # A mask of zeros is as legal as any, and free.
        self.transport.write(head + b"\0\0\0\0" + data)

    async def close(self, code: int = 1000) -> None:
        """End it as a page does that is left."""
        if self.closed is None:
            self.transport.resume_reading()
            self.send_frame(CLOSE, struct.pack("!H", code))
            try:
                await self.ended(5)
            except TimeoutError:
                self.abort()

    def abort(self) -> None:
        """End it as a machine does that falls off the network: a reset, no closing frame."""
        self.transport.abort()

    def stop_reading(self) -> None:
        """Be a slow reader: what comes fills the buffers of both machines."""
        self.transport.pause_reading()

    def go_on_reading(self) -> None:
        self.transport.resume_reading()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = self.closed or Closed(ABNORMAL, str(exc or ""))
        self._changed.set()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self.bytes += len(data)
        if self._head is None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            self._head = self._buffer[:end].decode("latin1")
            del self._buffer[: end + 4]
            self._changed.set()
        if self._head.split(" ", 2)[1] == "101":
            self._frames()

    def _frames(self) -> None:
        buffer, at = self._buffer, 0
        while len(buffer) - at >= 2:
            size, start = buffer[at + 1] & 0x7F, at + 2
            if size > 125:
                length = 2 if size == 126 else 8
                if len(buffer) < start + length:
                    break
                size = int.from_bytes(buffer[start : start + length], "big")
                start += length
            if len(buffer) < start + size:
                break
            self._frame(buffer[at], bytes(buffer[start : start + size]))
            at = start + size
        del buffer[:at]

    def _frame(self, head: int, data: bytes) -> None:
        match head & 0x0F:
            case kind if kind <= BINARY:
                self._parts.append(data)
                if head & 0x80:
                    whole, self._parts = b"".join(self._parts), []
                    self._take(whole.decode("utf-8", "replace"))
            case kind if kind == PING:
                self.pings += 1
                if self.answers_pings:
                    self.send_frame(PONG, data)
            case kind if kind == CLOSE:
                code = int.from_bytes(data[:2], "big") if len(data) > 1 else 1005
                if self.closed is None:
                    self.closed = Closed(code, data[2:].decode("utf-8", "replace"))
                    self.send_frame(CLOSE, data[:2])
                self.transport.close()
                self._changed.set()

    def _take(self, text: str) -> None:
        self.messages += 1
        if self.took is not None:
            self.took(text)
        else:
            self._waiting.append(text)
            self._changed.set()

    async def opened(self) -> None:
        """Wait for the answer to the handshake; raises Refused, or Closed."""
        while self._head is None:
            if self.closed is not None:
                raise self.closed
            self._changed.clear()
            await self._changed.wait()
        status = int(self._head.split(" ", 2)[1])
        if status != 101:
            self.transport.abort()
            raise Refused(status, self._head)


async def connect(
    url: str,
    *,
    cookies: Mapping[str, str] | None = None,
    origin: str | None = "",
    headers: Mapping[str, str] | None = None,
    took: Callable[[str], None] | None = None,
    receive_buffer: int = 0,
    seconds: float = 30,
) -> Socket:
    """Open a socket at ws://host:port/path; raises Refused, Closed or OSError.

    `origin` is the page's own unless another is given; None sends none. A small `receive_buffer`
    makes one that stops reading felt sooner.
    """
    parts = urlsplit(url)
    asked = {
        "Host": parts.netloc,
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        "Sec-WebSocket-Version": "13",
    }
    if origin is not None:
        asked["Origin"] = origin or f"http://{parts.netloc}"
    if cookies:
        asked["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())
    lines = [f"{name}: {value}\r\n" for name, value in (asked | dict(headers or {})).items()]
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    async with asyncio.timeout(seconds):
        peer = await _connected(parts.hostname or "", parts.port or 80, receive_buffer)
        loop = asyncio.get_running_loop()
        _, made = await loop.create_connection(lambda: Socket(took), sock=peer)
        made.transport.write(f"GET {target} HTTP/1.1\r\n{''.join(lines)}\r\n".encode("latin1"))
        try:
            await made.opened()
        except BaseException:
            made.abort()
            raise
    return made


async def _connected(host: str, port: int, receive_buffer: int) -> socket.socket:
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
