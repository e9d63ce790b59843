"""A real MCP server for the tests: `mcpservers.py stdio|http [port]`, and how to start it."""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import small_files
from tests.support.servers import free_port
from tools.framework.outside_access import WebAccess
from tools.mcp.connection import ServerStatus
from tools.mcp.definitions import Listed
from tools.mcp.pool import Pool
from tools.mcp.server import Address, Command, Server

ROOT = Path(__file__).resolve().parents[2]
WORDS = "Adds two numbers."


def command(folder: Path, *given: str, **environment: str) -> Command:
    """Return the command of a child: this program, or the hostile one in one of its modes."""
    line = (
        ("-m", "tests.support.hostile_mcp", *given)
        if given
        else ("-m", "tests.support.mcp_servers", "stdio")
    )
    path = {"PYTHONPATH": str(ROOT)} | environment
    return Command(sys.executable, line, tuple(path.items()), folder)


def address(port: int, **headers: str) -> Address:
    access = WebAccess(allowed_private=frozenset({f"127.0.0.1:{port}"}))
    return Address(f"http://127.0.0.1:{port}/mcp", tuple(headers.items()), access)


def server(place: Command | Address, **facts: Any) -> Server:
    return Server("demo", place, **{"deadline": 20.0} | facts)


@dataclass
class Heard:
    """A listener that records its notifications."""

    statuses: list[ServerStatus] = field(default_factory=list)
    tools: tuple[Listed, ...] = ()
    seen: int = 0

    async def record_status(self, server: str, status: ServerStatus) -> None:
        self.statuses.append(status)

    async def record_tools(self, server: str, tools: tuple[Listed, ...]) -> None:
        self.tools = tools

    @property
    def state(self) -> str:
        return self.statuses[-1].state if self.statuses else ""

    @property
    def digests(self) -> dict[str, str]:
        return {tool.name: tool.digest for tool in self.tools}

    async def until(self, state: str, seconds: float = 60) -> ServerStatus:
        """Wait until the server has this status, since the last call of this."""
        async with asyncio.timeout(seconds):
            while True:
                for at in range(self.seen, len(self.statuses)):
                    if self.statuses[at].state == state:
                        self.seen = at + 1
                        return self.statuses[at]
                await asyncio.sleep(0.02)


@asynccontextmanager
async def pooled(place: Command | Address, **facts: Any) -> AsyncIterator[tuple[Pool, Heard]]:
    """Connect to one server, named `demo`."""
    pool, heard = Pool(), Heard()
    await pool.keep([server(place, **facts)], heard)
    try:
        yield pool, heard
    finally:
        await pool.close()


class HttpServer:
    """The program on a port of loopback; a test can `kill` and `start` it repeatedly."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        line = [sys.executable, "-m", "tests.support.mcp_servers", "http", str(self.port)]
        self.process = subprocess.Popen(
            line, cwd=ROOT, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 120
        while not self._is_up():
            assert time.monotonic() < deadline, "the MCP server did not start"
            time.sleep(0.05)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def _is_up(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@contextmanager
def over_http() -> Iterator[HttpServer]:
    running = HttpServer(free_port())
    running.start()
    try:
        yield running
    finally:
        running.kill()


def program() -> Any:
    """Create the server with its tools."""
    import anyio
    from mcp.server.mcpserver import MCPServer
    from mcp_types import (
        EmbeddedResource,
        ImageContent,
        ResourceLink,
        TextContent,
        TextResourceContents,
    )
    from mcp_types import ToolAnnotations as Hints

    mcp = MCPServer("demo")

    @mcp.tool(
        description=os.environ.get("DEMO_WORDS", WORDS), annotations=Hints(read_only_hint=True)
    )
    def add(a: int, b: int) -> str:
        return str(a + b)

    @mcp.tool()
    def picture(width: int = 6) -> list[Any]:
        """Shows a picture and the file it was made from."""
        made = TextResourceContents(
            uri="file:///plan.txt", text="The plan: 4711", mime_type="text/plain"
        )
        link = ResourceLink(name="other", uri="http://127.0.0.1:9/secret", type="resource_link")
        drawn = base64.b64encode(small_files.png(width, 4)).decode()
        return [
            TextContent(type="text", text="Here it is."),
            ImageContent(type="image", data=drawn, mime_type="image/png"),
            EmbeddedResource(type="resource", resource=made),
            link,
        ]

    @mcp.tool()
    def told() -> str:
        """Tells its environment."""
        return "\n".join(sorted(f"{name}={value}" for name, value in os.environ.items()))

    @mcp.tool()
    async def wait(seconds: float) -> str:
        """Waits."""
        await anyio.sleep(seconds)
        return "waited"

    @mcp.tool()
    def boom() -> str:
        """Fails."""
        raise ValueError("nothing is there")

    @mcp.tool()
    def facts() -> dict[str, Any]:
        """Gives facts."""
        return {"answer": 42, "words": ["a", "b"]}

    @mcp.tool()
    def much(megabytes: int) -> str:
        """Gives a lot."""
        return "x" * (megabytes * 1_000_000)

    return mcp


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        program().run("stdio")
    else:
        program().run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
