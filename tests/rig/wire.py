"""HTTP and WebSocket as a browser speaks them, on plain asyncio streams: enough for the page."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass

#: Seconds a request or a handshake may take.
PATIENCE = 60
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


@dataclass(frozen=True, slots=True)
class Answer:
    """A response; header names are lower case, cookies those it sets."""

    status: int
    headers: dict[str, str]
    cookies: dict[str, str]
    text: str


class Refused(Exception):
    """A handshake that was answered by something else than 101."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the socket was refused with {status}")
        self.status = status


class Closed(Exception):
    """The socket is closed; 1006 when nobody said so."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the socket was closed with {code}")
        self.code = code


async def ask(
    port: int, method: str, path: str, headers: Mapping[str, str], body: bytes = b""
) -> Answer:
    """Make one request on a connection of its own; raises OSError, EOFError or TimeoutError."""
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        try:
            more = (
                {"Connection": "close", "Content-Length": str(len(body))}
                if body
                else {"Connection": "close"}
            )
            writer.write(_head(method, path, {"Host": f"127.0.0.1:{port}", **headers, **more}))
            writer.write(body)
            await writer.drain()
            status, found, cookies = await _read_head(reader)
            text = await _read_body(reader, found, has_body=method != "HEAD")
        finally:
            writer.close()
    return Answer(status, found, cookies, text.decode(errors="replace"))


def _head(method: str, path: str, headers: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode()


async def _read_head(
    reader: asyncio.StreamReader,
) -> tuple[int, dict[str, str], dict[str, str]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers: dict[str, str] = {}
    cookies: dict[str, str] = {}
    for line in head[1:-2]:
        name, _, value = line.partition(":")
        if name.lower() == "set-cookie":
            key, _, rest = value.strip().partition("=")
            cookies[key] = rest.partition(";")[0]
        headers[name.lower()] = value.strip()
    return int(head[0].split()[1]), headers, cookies


async def _read_body(
    reader: asyncio.StreamReader, headers: Mapping[str, str], *, has_body: bool
) -> bytes:
    if not has_body:
        return b""
    if "content-length" in headers:
        return await reader.readexactly(int(headers["content-length"]))
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.read()
    parts = []
    while size := int((await reader.readline()).split(b";")[0], 16):
        parts.append((await reader.readexactly(size + 2))[:-2])
    return b"".join(parts)


@dataclass(slots=True)
class Socket:
    """An open WebSocket; pings are answered while somebody reads."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def open(
        cls, port: int, path: str, headers: Mapping[str, str], *, room: int = 0
    ) -> Socket:
        """Shake hands; raises Refused, OSError, EOFError or TimeoutError.

        `room` is for the bytes that the kernel keeps until they are read, where they are to be few.
        """
        host = f"127.0.0.1:{port}"
        fixed = {
            "Host": host,
            "Origin": f"http://{host}",
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
            "Sec-WebSocket-Version": "13",
        }
        async with asyncio.timeout(PATIENCE):
            link = socket.socket()
            link.setblocking(False)
            if room:
                link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
            await asyncio.get_running_loop().sock_connect(link, ("127.0.0.1", port))
            reader, writer = await asyncio.open_connection(sock=link, limit=1 << 20)
            found = cls(reader, writer)
            status = 0
            try:
                writer.write(_head("GET", path, {**fixed, **headers}))
                status, _, _ = await _read_head(reader)
            finally:
                if status != 101:
                    found.abort()
        if status != 101:
            raise Refused(status)
        return found

    async def receive(self) -> str:
        """Give the next message; raises Closed."""
        parts: list[bytes] = []
        while True:
            try:
                first, data = await self._frame()
            except (OSError, EOFError):
                raise Closed(1006) from None
            match first & 15:
                case opcode if opcode in (0, TEXT, BINARY):
                    parts.append(data)
                    if first & 128:
                        return b"".join(parts).decode()
                case opcode if opcode == PING:
                    await self.send(data, PONG)
                case opcode if opcode == CLOSE:
                    raise Closed(struct.unpack(">H", data[:2])[0] if data else 1005)

    async def _frame(self) -> tuple[int, bytes]:
        first, size = await self.reader.readexactly(2)
        if size == 126:
            size = struct.unpack(">H", await self.reader.readexactly(2))[0]
        elif size == 127:
            size = struct.unpack(">Q", await self.reader.readexactly(8))[0]
        return first, await self.reader.readexactly(size)

    async def send(self, data: bytes | str, opcode: int = TEXT) -> None:
        """Send one frame; its mask of zeros leaves the data as it is."""
        raw = data.encode() if isinstance(data, str) else data
        if len(raw) < 126:
            size = bytes([128 | len(raw)])
        elif len(raw) < 65_536:
            size = bytes([128 | 126]) + struct.pack(">H", len(raw))
        else:
            size = bytes([128 | 127]) + struct.pack(">Q", len(raw))
        self.writer.write(bytes([128 | opcode]) + size + bytes(4) + raw)
        await self.writer.drain()

    def abort(self) -> None:
        """Be gone without a word."""
        self.writer.transport.abort()

    async def close(self) -> None:
        with contextlib.suppress(OSError):
            await self.send(struct.pack(">H", 1000), CLOSE)
        self.writer.close()
