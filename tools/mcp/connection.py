"""The connection to one server, held by one task, because the client's scopes belong to a task.

Callers use the session from their own tasks, so a call that is cancelled or never ends disturbs no
other. When the connection is lost, open calls fail at once and the task reconnects: immediately
after a connection that lasted, else with growing delays. After each connect and
at intervals the list of tools is read and reported; a call is only made when the tool's listed
definition is the approved one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from tools.mcp.errors import DefinitionChangedError, ServerError
from tools.mcp.server import Address, Server

if TYPE_CHECKING:
    from mcp.client import ClientSession, Transport
    from mcp_types import CallToolResult

    from tools.mcp.definitions import Listed

logger = logging.getLogger("tools")
#: Seconds to connect and to read the list of tools; fewest seconds between two reads of the list.
PATIENCE, LEAST_INTERVAL = 30.0, 5.0
#: Seconds after which a connection counts as one that lasted; the longest delay of a reconnect.
LASTED, LONGEST_DELAY = 30.0, 60.0
#: Seconds to end a child process, SIGKILL included, with a margin.
ENDING = 10.0
#: Seconds after the deadline of a call until its request over HTTP is given up.
SLACK = 15.0
STALE = "its definition changed; an administrator must approve it again"

State = Literal["connecting", "connected", "failed", "idle"]


@dataclass(frozen=True, slots=True)
class ServerStatus:
    state: State
    error: str = ""
    #: the server's name and protocol
    says: str = ""


class Listener(Protocol):
    """Receives the status of a server and its list of tools."""

    async def record_status(self, server: str, status: ServerStatus) -> None: ...

    async def record_tools(self, server: str, tools: tuple[Listed, ...]) -> None: ...


class Connection:
    """The task that holds the connection to one server, and the server's state."""

    def __init__(self, server: Server, listener: Listener) -> None:
        self.server, self._listener = server, listener
        self.status = ServerStatus("connecting")
        self._session: ClientSession | None = None
        self._digests: dict[str, str] = {}
        #: a connection attempt has ended; a check of the list is requested; the task must end
        self._settled, self._check_requested, self._must_end = (asyncio.Event() for _ in range(3))
        self._lost_because = ""
        self._is_ending, self._since = False, math.inf
        #: the running wait for an answer of the server
        self._patience: asyncio.Timeout | None = None
        self._task = asyncio.create_task(self._run(), name=f"mcp-{server.name}")

    @property
    def has_ended(self) -> bool:
        """Whether the task is over, whatever ended it: this connection never comes back."""
        return self._task.done()

    def request_check(self) -> None:
        """Read the list of tools soon; connect now if a delay is running."""
        self._check_requested.set()

    async def end(self) -> None:
        """Close the connection; its task ends in bounded time."""
        self._is_ending = True
        self._must_end.set()
        if self._patience is not None and not self._patience.expired():
            # Do not wait for a server that does not answer.
            self._patience.reschedule(0)
        _, late = await asyncio.wait([self._task], timeout=ENDING)
        if late:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=ENDING)

    async def call(self, tool: str, digest: str, arguments: dict[str, Any]) -> CallToolResult:
        """Call a tool whose definition with this digest was approved; raises ServerError."""
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED

        from tools.mcp.session import call_tool, describe_error

        session = await self._connected()
        if self._digests.get(tool) != digest:
            raise DefinitionChangedError(f"The tool was not run: {STALE}.")
        try:
            return await call_tool(session, tool, arguments)
        except MCPError as error:
            if "Session terminated" in error.error.message:
                self._drop("It has begun anew.", session)
                raise ServerError(
                    "The server has begun anew and did not run it: try again."
                ) from error
            if error.error.code == CONNECTION_CLOSED:
                self._drop("The connection was closed.", session)
                raise ServerError(
                    "The connection to the server was lost during the call. The outcome is unknown:"
                    " check before repeating."
                ) from error
            raise ServerError(self.server.redact(describe_error(error))) from error

    async def _connected(self) -> ClientSession:
        if self.status.state == "connecting":
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    await self._settled.wait()
        if self._session is None or self._lost_because:
            why = self.status.error or "It is not connected yet."
            raise ServerError(f"The server {self.server.name} cannot be used now. {why}")
        return self._session

    def _drop(self, why: str, session: ClientSession | None = None) -> None:
        """Make the task reconnect; calls made meanwhile wait for the outcome."""
        if session is not self._session and session is not None:
            return
        self._lost_because = self._lost_because or why
        self.status = ServerStatus("connecting")
        self._settled.clear()
        self._must_end.set()

    def _is_live(self) -> bool:
        return not self._is_ending

    async def _run(self) -> None:
        delay = 0.0
        while self._is_live():
            await self._set_status(ServerStatus("connecting"))
            self._since = math.inf
            why = await self._hold_connection()
            has_held = asyncio.get_running_loop().time() - self._since > LASTED
            delay = 0.0 if has_held else min(2 * delay + 1, LONGEST_DELAY)
            self._must_end.clear()
            if not self._is_live():
                break
            await self._set_status(ServerStatus("failed", why))
            await _wait_for_any(delay, self._check_requested, self._must_end)
        await self._set_status(ServerStatus("idle"))

    async def _hold_connection(self) -> str:
        """Connect and stay connected; return why the connection ended."""
        from tools.mcp.session import describe_error, find_first_error

        self._lost_because = ""
        self._must_end.clear()
        if not self._is_live():
            return ""
        try:
            async with AsyncExitStack() as stack:
                await self._serve(stack)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            cause = find_first_error(error)
            # Most errors are consequences of the lost connection; a ServerError is its cause.
            is_rule = isinstance(cause, ServerError)
            if is_rule or not self._lost_because:
                return self.server.redact(describe_error(cause))
            return self._lost_because
        finally:
            self._session = None
            self._settled.clear()
        return self._lost_because

    async def _serve(self, stack: AsyncExitStack) -> None:
        from tools.mcp.session import describe_server, make_client, read_listing

        async with self._within_patience():
            client = await stack.enter_async_context(
                make_client(self._transport(), self.request_check)
            )
            tools = await read_listing(self.server, client.session)
        self._session = client.session
        self._since = asyncio.get_running_loop().time()
        while not self._must_end.is_set():
            self._check_requested.clear()
            await self._report_tools(tools)
            await self._set_status(ServerStatus("connected", says=describe_server(client.session)))
            await _wait_for_any(LEAST_INTERVAL, self._must_end)
            await _wait_for_any(self.server.check_seconds, self._must_end, self._check_requested)
            if not self._must_end.is_set():
                async with self._within_patience():
                    tools = await read_listing(self.server, client.session)

    @contextlib.asynccontextmanager
    async def _within_patience(self) -> AsyncIterator[None]:
        async with asyncio.timeout(PATIENCE) as patience:
            self._patience = patience
            try:
                yield
            finally:
                self._patience = None

    async def _report_tools(self, tools: tuple[Listed, ...]) -> None:
        self._digests = {tool.name: tool.digest for tool in tools if not tool.flaw}
        await _notify(self._listener.record_tools(self.server.name, tools))

    async def _set_status(self, status: ServerStatus) -> None:
        self.status = status
        if status.state in ("connected", "failed"):
            self._settled.set()
        else:
            self._settled.clear()
        await _notify(self._listener.record_status(self.server.name, status))

    def _transport(self) -> Transport:
        from tools.mcp.http import connect_http
        from tools.mcp.stdio import connect_stdio

        endpoint = self.server.endpoint
        if isinstance(endpoint, Address):
            return connect_http(endpoint, self.server.deadline + SLACK, self._on_lost)
        return connect_stdio(endpoint, self._on_lost)

    def _on_lost(self, why: str, wrote: str) -> None:
        # What a server writes once it has been used may hold personal data.
        has_worked = self._session is not None
        if not has_worked and wrote:
            why = f"{why} It wrote: {self.server.redact(wrote)}"
        self._drop(why)


async def _notify(report: Awaitable[None]) -> None:
    """Await the listener; its failure is logged and must not end a connection."""
    try:
        await report
    except Exception:
        logger.exception("the state of an MCP server was not recorded")


async def _wait_for_any(seconds: float, *events: asyncio.Event) -> None:
    """Wait until one of the events is set, or for `seconds`."""
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()
