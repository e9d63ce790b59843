"""A hostile MCP server over HTTP, in the loop of the test and without the library."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support import mcp_servers
from tests.support.hostile_mcp import GREETING, tool
from tools.mcp.server import Address

#: Answers a message that it may read, and returns whether it has: else it gets the usual answer.
Respond = Callable[[dict[str, Any], asyncio.StreamWriter], Awaitable[bool]]


@dataclass
class HostileSite:
    respond: Respond
    port: int = 0
    #: the connections that are open
    writers: set[asyncio.StreamWriter] = field(default_factory=set)

    @property
    def address(self) -> Address:
        return mcp_servers.address(self.port)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.add(writer)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
            message = json.loads(await reader.readexactly(int(length)))
            closed = asyncio.create_task(reader.read())
            answered = asyncio.create_task(self._answer(message, writer))
            await asyncio.wait({closed, answered}, return_when=asyncio.FIRST_COMPLETED)
            closed.cancel()
            answered.cancel()
        except (ConnectionError, asyncio.IncompleteReadError, ValueError):
            pass
        finally:
            self.writers.discard(writer)
            writer.close()

    async def _answer(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        if await self.respond(message, writer):
            return
        match message.get("method"):
            case "initialize":
                send_json(writer, message["id"], GREETING)
            case "tools/list":
                send_json(writer, message["id"], {"tools": [tool()]})
            case "tools/call":
                send_json(writer, message["id"], {"content": [{"type": "text", "text": "looked"}]})
            case _ if "method" in message and "id" in message:
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            case _:
                writer.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()


def send_json(writer: asyncio.StreamWriter, id: Any, result: Any) -> None:
    text = json.dumps({"jsonrpc": "2.0", "id": id, "result": result})
    send_body(writer, "application/json", text.encode())


def send_body(writer: asyncio.StreamWriter, kind: str, body: bytes) -> None:
    """Send an answer, compressed: a few bytes of it may be many."""
    packed = gzip.compress(body)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Encoding: gzip\r\n"
    writer.write(f"{head}Content-Length: {len(packed)}\r\n\r\n".encode() + packed)


async def keep_alive(writer: asyncio.StreamWriter) -> None:
    """Begin a stream of events that has no event and no end."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
    while True:
        writer.write(b": ping\n\n")
        await writer.drain()
        await asyncio.sleep(0.05)


@asynccontextmanager
async def hostile_site(respond: Respond) -> AsyncIterator[HostileSite]:
    site = HostileSite(respond)
    server = await asyncio.start_server(site.handle, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()
