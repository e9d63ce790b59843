"""The servers of this process, each with its connection.

`keep` is called with all servers whenever the settings may have changed. A call only names its
server, so a turn that began before a server was switched off or changed uses the current state.
Each process that runs turns has its own pool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tools.mcp.connection import Connection, Listener
from tools.mcp.errors import ServerOffError
from tools.mcp.server import Server

if TYPE_CHECKING:
    from mcp_types import CallToolResult


class Pool:
    def __init__(self) -> None:
        self._connections: dict[str, Connection] = {}
        self._gate = asyncio.Lock()

    async def keep(self, servers: Iterable[Server], listener: Listener) -> None:
        """Connect to these servers and to no others; reconnect to those whose settings changed."""
        async with self._gate:
            wanted = {server.name: server for server in servers}
            obsolete = [
                self._connections.pop(name)
                for name, connection in list(self._connections.items())
                if wanted.get(name) != connection.server
            ]
            await asyncio.gather(*(connection.end() for connection in obsolete))
            for name, server in wanted.items():
                if name not in self._connections:
                    self._connections[name] = Connection(server, listener)

    def request_check(self, name: str) -> None:
        """Read the list of tools of a server soon."""
        if name in self._connections:
            self._connections[name].request_check()

    async def call(
        self, name: str, tool: str, digest: str, arguments: dict[str, Any]
    ) -> CallToolResult:
        """Call a tool of a server as it was approved; raises ServerError."""
        if name not in self._connections:
            raise ServerOffError(f"The server {name} is switched off.")
        return await self._connections[name].call(tool, digest, arguments)

    async def close(self) -> None:
        """Close all connections."""
        async with self._gate:
            obsolete = list(self._connections.values())
            self._connections.clear()
            await asyncio.gather(*(connection.end() for connection in obsolete))


#: The pool of this process.
pool = Pool()
