"""A visitor at the level of bytes, and what the process under attack uses of the machine."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import psutil

from agentweb.bench.websocket_client import Closed, Socket, connect
from tests.agentweb.test_serve import Visitor, begin, set_up, socket_path
from tests.e2e.served import Served

MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Site:
    """A served app with somebody logged in, who has one conversation."""

    served: Served
    visitor: Visitor
    #: The path of the conversation's socket, with its token.
    socket: str

    @property
    def port(self) -> int:
        return self.served.port

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def head(self, method: str, path: str, *lines: str) -> bytes:
        """Make the head of a request of whoever is logged in."""
        every = [
            f"{method} {path} HTTP/1.1",
            f"Host: {self.host}",
            f"Cookie: {self.visitor.cookie}",
        ]
        return "\r\n".join([*every, *lines, "", ""]).encode("latin1")

    async def ask(self, *parts: bytes, source: str = "127.0.0.1", seconds: float = 60) -> bytes:
        """Send parts and give what comes back until the server has closed."""
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.port, local_addr=(source, 0)
        )
        answer = bytearray()

        async def listen() -> None:
            with contextlib.suppress(ConnectionError):
                while found := await reader.read(65_536):
                    answer.extend(found)

        listening = asyncio.create_task(listen())
        try:
            async with asyncio.timeout(seconds):
                with contextlib.suppress(ConnectionError):
                    for part in parts:
                        writer.write(part)
                        await writer.drain()
                await listening
        finally:
            listening.cancel()
            writer.close()
        return bytes(answer)

    async def open(self, path: str = "", **options: object) -> Socket:
        """Open a socket on the conversation."""
        url = f"ws://{self.host}{path or self.socket}"
        return await connect(url, cookies=self.visitor.cookies, **options)  # type: ignore[arg-type]

    @asynccontextmanager
    async def another(self) -> AsyncIterator[Socket]:
        """Keep a socket open beside what happens, and see that it lives on."""
        made = await self.open()
        await made.read()
        try:
            yield made
            assert made.closed is None
            assert self.visitor.ask("GET", "/healthz/ready")[0] == 200
        finally:
            await made.close()

    async def begin(self, text: str) -> str:
        """Begin another conversation and give the path of its socket."""
        return await asyncio.to_thread(socket_path, self.visitor, begin(self.visitor, text))

    def uses(self) -> int:
        """Count the open descriptors of the process."""
        return psutil.Process(self.served.process.pid).num_fds()


def visit(served: Served) -> Site:
    """Set the site up and begin a conversation."""
    visitor = set_up(served)
    return Site(served, visitor, socket_path(visitor, begin(visitor, "Hello there")))


@contextmanager
def growth(served: Served, most: int) -> Iterator[None]:
    """See that the process does not grow by more than so many bytes."""
    process = psutil.Process(served.process.pid)
    before = process.memory_info().rss
    yield
    assert process.memory_info().rss - before < most


async def get(served: Served, path: str) -> bytes:
    """Ask for a page of nobody in particular."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
    try:
        return await asyncio.wait_for(reader.read(), 60)
    finally:
        writer.close()


def status(answer: bytes) -> int:
    """Give the status of an answer; 0 for none."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


async def code(made: Socket, seconds: float = 60) -> int:
    """Give the code that a socket is closed with."""
    return (await made.wait_closed(seconds)).code


__all__ = ["MB", "Closed", "Site", "Socket", "code", "connect", "get", "growth", "status", "visit"]
