"""Posts over raw asyncio, as small as they can be: what a page's forms send."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import cast
from urllib.parse import urlencode, urlsplit

#: Any value will do, as long as cookie and header carry the same.
TOKEN = "b" * 32


class Post(asyncio.Protocol):
    """One request on a connection of its own; its answer goes to `status` and `data`."""

    def __init__(self) -> None:
        self.status = 0
        self.data = bytearray()
        self.transport: asyncio.Transport
        self._whole = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.data += data
        if not self.status and b"\r\n" in self.data:
            self.status = int(self.data.split(b" ", 2)[1])
        if b"\r\n\r\n" in self.data:
            self._whole.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._whole.set()

    async def answered(self) -> int:
        """Wait for the head of the answer and give its status; 0: there was none."""
        await self._whole.wait()
        return self.status


async def post(url: str, body: bytes, headers: Mapping[str, str], protocol: Post) -> None:
    """Connect and send; what comes back is the protocol's."""
    parts = urlsplit(url)
    lines = {
        "Host": parts.netloc,
        "Content-Length": str(len(body)),
        "Connection": "close",
    } | dict(headers)
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    peer = socket.socket()
    peer.setblocking(False)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    loop = asyncio.get_running_loop()
    try:
        await loop.sock_connect(peer, (parts.hostname or "", parts.port or 80))
    except BaseException:
        peer.close()
        raise
    await loop.create_connection(lambda: protocol, sock=peer)
    protocol.transport.write(f"POST {parts.path} HTTP/1.1\r\n{head}\r\n".encode("latin1") + body)


async def post_form(url: str, session: str, **fields: str) -> int:
    """Post a form as the page's script does, and give the status of the answer."""
    parts, made = urlsplit(url), Post()
    headers = {
        "Origin": f"{parts.scheme}://{parts.netloc}",
        "Content-Type": "application/x-www-form-urlencoded",
        "Cookie": f"sessionid={session}; csrftoken={TOKEN}",
        "X-CSRFToken": TOKEN,
        "HX-Request": "true",
    }
    await post(url, urlencode(fields).encode(), headers, made)
    try:
        return await made.answered()
    finally:
        made.transport.abort()
