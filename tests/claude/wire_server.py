"""A minimal HTTP server that answers as a test says, and a client that reads from it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from conversations.agent.ports import Head, ModelFailed, Piece
from conversations.claude.client import Claude, Deadlines

KEY = "sk-ant-SECRET-of-the-test-0123456789"
QUICK = Deadlines(first_event=0.4, silence=0.3, attempt=1.2)
PATIENT = Deadlines(first_event=60, silence=60, attempt=120)
SSE = "content-type: text/event-stream"
Answer = Callable[[asyncio.StreamWriter], Coroutine[Any, Any, None]]


@dataclass
class Raw:
    """What a raw server heard; `gone` is set when a client has closed its connection."""

    url: str = ""
    heads: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    gone: asyncio.Event = field(default_factory=asyncio.Event)


@asynccontextmanager
async def raw(answer: Answer) -> AsyncIterator[Raw]:
    """Serve every request with `answer`, then close the connection."""
    heard = Raw()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = next(
                int(line.split(":")[1])
                for line in head.splitlines()
                if line.lower().startswith("content-length:")
            )
            heard.heads.append(head)
            heard.bodies.append(await reader.readexactly(length))
            answering = asyncio.create_task(answer(writer))
            leaving = asyncio.create_task(reader.read())
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if leaving.done():
                heard.gone.set()
            answering.cancel()
            leaving.cancel()
            await asyncio.gather(answering, leaving, return_exceptions=True)
        with suppress(ConnectionError):
            writer.close()
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    heard.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield heard
    finally:
        server.close()


def http(status: str, *headers: str, body: str = "") -> bytes:
    """A whole response; with no length, its body goes on until the connection ends."""
    lines = [f"HTTP/1.1 {status}", "connection: close", *headers, "", body]
    return "\r\n".join(lines).encode()


def event(value: Any) -> bytes:
    return f"event: {value['type']}\ndata: {json.dumps(value)}\n\n".encode()


def sends(*parts: bytes, pause: float = 0.0, then: float = 0.0) -> Answer:
    """Send the parts with pauses between, wait, and let the connection end."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause)
        await asyncio.sleep(then)

    return answer


def refuses(status: str, *headers: str, body: str = "") -> Answer:
    return sends(http(status, f"content-length: {len(body.encode())}", *headers, body=body))


@asynccontextmanager
async def client(url: str, deadlines: Deadlines = PATIENT, key: str = KEY) -> AsyncIterator[Claude]:
    claude = Claude(api_key=key, base_url=url, deadlines=deadlines)
    try:
        yield claude
    finally:
        await claude.close()


@dataclass
class Heard:
    """What came of one request, and how it failed."""

    head: Head | None = None
    events: list[dict[str, Any]] = field(default_factory=list)
    failure: ModelFailed | None = None

    @property
    def code(self) -> str:
        return self.failure.code if self.failure else ""

    @property
    def may_retry(self) -> bool:
        return bool(self.failure and self.failure.may_retry)

    @property
    def text(self) -> str:
        return "".join(e.get("delta", {}).get("text", "") for e in self.events)


async def listen(claude: Claude, body: str) -> Heard:
    heard = Heard()
    try:
        async with aclosing(claude.stream(body)) as stream:
            async for item in stream:
                if isinstance(item, Piece):
                    heard.events += item.events
                else:
                    heard.head = item
    except ModelFailed as failure:
        heard.failure = failure
    return heard


async def ask(url: str, body: str = "{}", deadlines: Deadlines = PATIENT, key: str = KEY) -> Heard:
    async with client(url, deadlines, key) as claude:
        return await listen(claude, body)
