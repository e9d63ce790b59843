"""Real sockets for the tools: a site that answers as told, and a canary that nobody may reach."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
import pytest_asyncio

from tests.tools.memory import MemoryWorkspace
from tools.framework.outside_access import WebAccess
from tools.framework.tool import FoundOriginal, ToolContext
from tools.text.ranking import Ranking
from tools.workspace.workspace import Quota

Respond = Callable[[str, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Site:
    port: int = 0
    #: the head of every request, as received
    heads: list[str] = field(default_factory=list)
    connections: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def access(self) -> WebAccess:
        return WebAccess(allowed_private=frozenset({f"127.0.0.1:{self.port}"}))


@dataclass
class Originals:
    """Originals in memory."""

    texts: dict[str, str] = field(default_factory=dict)
    shown: set[str] = field(default_factory=set)
    also: str = ""

    async def find(self, id: str) -> str | None:
        return self.texts.get(id)

    async def search(self, query: str, most: int) -> list[FoundOriginal]:
        ranking = Ranking(query)
        for key, text in self.texts.items():
            ranking.add(key, text)
        return [
            FoundOriginal(
                key,
                "a page",
                len(self.texts[key]),
                row.passage,
                key in self.shown,
                self.also,
                row.copies,
            )
            for row in ranking.list_best(most)
            for key in [row.key]
        ]


def build_reply(body: bytes | str = b"", status: str = "200 OK", **headers: str) -> bytes:
    """Build a whole response; Content_Type="x" becomes a header."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(data)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + data


Serve = Callable[..., Awaitable[Site]]


@pytest.fixture
def reply() -> Callable[..., bytes]:
    return build_reply


@pytest_asyncio.fixture
async def serve() -> AsyncIterator[Serve]:
    """Start sites: `await serve(bytes)` or `await serve(async function of path and writer)`."""
    servers: list[asyncio.Server] = []

    async def start(answer: bytes | Respond, tls: ssl.SSLContext | None = None) -> Site:
        site = Site()

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            site.connections += 1
            try:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                site.heads.append(head)
                if isinstance(answer, bytes):
                    writer.write(answer)
                else:
                    await answer(head.split(" ")[1], writer)
                await writer.drain()
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
        servers.append(server)
        site.port = server.sockets[0].getsockname()[1]
        return site

    yield start
    for server in servers:
        server.close()


@pytest_asyncio.fixture
async def canary() -> AsyncIterator[Site]:
    """Listen on both loopbacks and count connections."""
    site = Site()

    async def handle(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        site.connections += 1
        writer.write(build_reply("you should not see this"))
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    servers = [server]
    with suppress(OSError):  # a machine without IPv6
        servers.append(await asyncio.start_server(handle, "::1", site.port))
    yield site
    for each in servers:
        each.close()


@pytest.fixture
def workspace() -> MemoryWorkspace:
    return MemoryWorkspace(Quota(max_bytes=10_000, max_files=20, max_file_bytes=5_000))


@pytest.fixture
def originals() -> Originals:
    return Originals()


@pytest.fixture
def context(workspace: MemoryWorkspace, originals: Originals) -> ToolContext:
    return ToolContext(
        user_id="7",
        workspace=workspace,
        originals=originals,
        web=WebAccess(),
        now=lambda: datetime(2026, 11, 21, 7, 5, 9, tzinfo=UTC),
        cancelled=lambda: False,
    )
