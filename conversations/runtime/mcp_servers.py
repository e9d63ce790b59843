"""The MCP connections of a process that runs turns, kept in step with the settings.

The database is polled every `SECONDS`, and at once after an administrator changed something in this
process, so changes made in other processes arrive as well. What a connection reports is stored by
`toolbox.mcp.servers`; this module decides nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

from conversations.db import run_db
from conversations.toolbox.mcp.approved_tools import list_pool_servers, list_requested_checks
from conversations.toolbox.mcp.servers import clear_check_request, record_listing, record_status
from tools.mcp.connection import ServerStatus
from tools.mcp.definitions import Listed
from tools.mcp.pool import Pool, pool

logger = logging.getLogger("agentweb.turns")
SECONDS = 10.0


class _Recorder:
    def __init__(self) -> None:
        #: Servers whose failure is logged already; each is logged once.
        self._failing: set[str] = set()

    async def record_status(self, server: str, status: ServerStatus) -> None:
        if status.state == "failed" and server not in self._failing:
            self._failing.add(server)
            logger.warning("MCP server %s failed", server)
        elif status.state in ("connected", "idle"):
            self._failing.discard(server)
        await run_db(record_status, name=server, status=status)

    async def record_tools(self, server: str, tools: tuple[Listed, ...]) -> None:
        await run_db(record_listing, name=server, tools=tools)


class PoolSynchronizer:
    """Keeps the connection pool of this process in step with the database."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._refused: dict[str, str] = {}
        self._recorder = _Recorder()

    async def start(self) -> None:
        """Start connecting; turns launched after this returns know their servers."""
        if self._task is not None:
            return
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        await self._try()
        self._task = asyncio.create_task(self._keep(), name="mcp-keeper")

    def wake(self) -> None:
        """Poll the settings soon. Callable from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._woken.set)

    async def stop(self) -> None:
        """Close all connections."""
        self._loop = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        await self._pool.close()

    async def _keep(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SECONDS):
                    await self._woken.wait()
            self._woken.clear()
            await self._try()

    async def _try(self) -> None:
        try:
            await self._look()
        except Exception:
            logger.exception("the MCP servers could not be looked at; it is tried again")

    async def _look(self) -> None:
        servers, refused = await run_db(list_pool_servers)
        await self._pool.keep(servers, self._recorder)
        for name, why in refused.items():
            if self._refused.get(name) != why:
                await self._recorder.record_status(name, ServerStatus("failed", why))
        self._refused = refused
        for server_id, name in await run_db(list_requested_checks):
            self._pool.request_check(name)
            await run_db(clear_check_request, server_id=server_id)


pool_synchronizer = PoolSynchronizer(pool)
