"""HTTP/1.1 for ASGI apps on an asyncio protocol: keep-alive, chunked answers, back-pressure both
ways.

Chosen against Daphne (its reactor cannot run twice in one process) and uvicorn (not a dependency).
An app that returns before its last body message has the connection closed on it, which is how the
emulator cuts a stream; the message type `emulator.reset` sends a TCP reset instead, and after
`emulator.unbounded` no write waits for the peer.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from typing import cast
from urllib.parse import unquote

from agentweb.emulator.asgi import App, Message, Scope
from agentweb.emulator.http_body import Body
from agentweb.emulator.http_head import BadHead, Head, parse_head

_MAX_HEAD = 65_536
_HIGH_WATER = 1_048_576
_UNBOUNDED = 1 << 40
_LINGER_BYTES = 64 * 1_048_576
_logger = logging.getLogger(__name__)


class Connection(asyncio.Protocol):
    def __init__(self, app: App, connections: set[Connection]) -> None:
        self._app = app
        self._connections = connections
        self._buffer = bytearray()
        self._gone = False
        self._paused = False
        self._reading = True
        self._arrived = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()
        self._transport: asyncio.Transport
        self.task: asyncio.Task[None]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connections.add(self)
        self.task = asyncio.get_running_loop().create_task(self._serve())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) > _HIGH_WATER and self._reading:
            self._transport.pause_reading()
            self._reading = False
        self._arrived.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone = True
        self._connections.discard(self)
        self._arrived.set()
        self._drained.set()

    def pause_writing(self) -> None:
        self._drained.clear()

    def resume_writing(self) -> None:
        self._drained.set()

    async def more(self) -> bool:
        """Wait for bytes that were not there before; False once the peer is gone."""
        self._arrived.clear()
        if not self._reading and not self._gone:
            self._reading = True
            self._transport.resume_reading()
        if not self._gone:
            await self._arrived.wait()
        return not self._gone

    @property
    def buffer(self) -> bytearray:
        return self._buffer

    async def write(self, data: bytes) -> None:
        if not self._gone:
            self._transport.write(data)
        if not self._drained.is_set():
            await self._drained.wait()

    def never_wait(self) -> None:
        """Take whatever is written, however slowly the peer reads."""
        self._transport.set_write_buffer_limits(high=_UNBOUNDED)

    def reset(self) -> None:
        """Close with a TCP reset."""
        sock = self._transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    async def _serve(self) -> None:
        try:
            while await self._serve_one():
                pass
        except BadHead as error:
            await self.write(b"HTTP/1.1 %d Bad Request\r\ncontent-length: 0\r\n\r\n" % error.status)
        finally:
            self._transport.close()

    async def _serve_one(self) -> bool:
        head = await self._read_head()
        if head is None:
            return False
        exchange = _Exchange(self, head)
        try:
            await self._app(_scope(head, self._transport), exchange.receive, exchange.send)
        except Exception:
            if self._gone:
                return False
            _logger.exception("the app failed on %s %s", head.method, head.target)
            if not exchange.started:
                await self.write(b"HTTP/1.1 500 Error\r\ncontent-length: 0\r\n\r\n")
            return False
        if not exchange.finished:
            return False
        if not exchange.body.complete:
            await self._linger(exchange.body)
            return False
        return head.keep_alive and not self._gone

    async def _linger(self, body: Body) -> None:
        """Swallow what the peer still sends, so that it reads our answer and not a reset."""
        seen = 0
        try:
            async with asyncio.timeout(2):
                while seen < _LINGER_BYTES and not body.complete:
                    message = await body.read()
                    if message["type"] == "http.disconnect":
                        return
                    seen += len(message["body"])
        except TimeoutError:
            return

    async def _read_head(self) -> Head | None:
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > _MAX_HEAD:
                raise BadHead(431)
            if not await self.more():
                return None
        head = parse_head(bytes(self._buffer[:end]))
        del self._buffer[: end + 4]
        return head


class _Exchange:
    """One request and its response, as the app sees them."""

    def __init__(self, connection: Connection, head: Head) -> None:
        self._connection = connection
        self._head = head
        self._chunked = False
        self._pending = b""
        self.body = Body(connection, head)
        self.started = False
        self.finished = False

    async def receive(self) -> Message:
        if not self.body.told:
            return await self.body.read()
        while not self.finished and await self._connection.more():
            pass
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        match message["type"]:
            case "http.response.start":
                self._start(message)
            case "http.response.body":
                await self._body(message.get("body", b""), last=not message.get("more_body", False))
            case "emulator.unbounded":
                self._connection.never_wait()
            case "emulator.reset":
                await asyncio.sleep(0)
                self._connection.reset()

    def _start(self, message: Message) -> None:
        self.started = True
        names = {name.lower() for name, _ in message["headers"]}
        self._chunked = b"content-length" not in names
        lines = [
            b"HTTP/1.1 %d %s" % (message["status"], b"OK" if message["status"] < 400 else b"Error")
        ]
        lines += [name + b": " + value for name, value in message["headers"]]
        if self._chunked:
            lines.append(b"transfer-encoding: chunked")
        if not self._head.keep_alive or not self.body.complete:
            lines.append(b"connection: close")
        self._pending = b"\r\n".join(lines) + b"\r\n\r\n"

    async def _body(self, data: bytes, *, last: bool) -> None:
        head, self._pending = self._pending, b""
        if self._head.method == "HEAD":
            data = b""
        elif self._chunked:
            data = (b"%x\r\n%b\r\n" % (len(data), data)) if data else b""
            data += b"0\r\n\r\n" if last else b""
        if last:
            self.finished = True
        if head or data:
            await self._connection.write(head + data)


def _scope(head: Head, transport: asyncio.Transport) -> Scope:
    path, _, query = head.target.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": head.method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode("latin-1"),
        "query_string": query.encode("latin-1"),
        "root_path": "",
        "headers": list(head.headers),
        "client": transport.get_extra_info("peername"),
        "server": transport.get_extra_info("sockname"),
        "extensions": {"emulator.reset": {}},
    }
