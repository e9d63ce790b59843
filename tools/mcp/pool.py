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
        #: the loop that the connections belong to
        self._loop: asyncio.AbstractEventLoop | None = None

    async def keep(self, servers: Iterable[Server], listener: Listener) -> None:
        """Connect to these servers and to no others.

        Those whose settings changed, or whose connection's task is over, are connected anew.
        """
        self._loop = asyncio.get_running_loop()
        async with self._gate:
            wanted = {server.name: server for server in servers}
            obsolete = [
                self._connections.pop(name)
                for name, connection in list(self._connections.items())
                if connection.has_ended or wanted.get(name) != connection.server
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
        """Call a tool of a server as it was approved, from any event loop; raises ServerError."""
        connection = self._connections.get(name)
        if connection is None or self._loop is None:
            raise ServerOffError(f"The server {name} is switched off.")
        work = connection.call(tool, digest, arguments)
        if self._loop is asyncio.get_running_loop():
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def close(self) -> None:
        """Close all connections."""
        async with self._gate:
            obsolete = list(self._connections.values())
            self._connections.clear()
            await asyncio.gather(*(connection.end() for connection in obsolete))


#: The pool of this process.
pool = Pool()
