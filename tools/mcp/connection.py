"""One server, one task: it alone enters and leaves the client, because scopes belong to a task.

Callers use the session from their own tasks while it is there, so a call that is cancelled or that
never ends hurts no other. When the connection is lost, open calls fail at once and the task begins
anew: at once after a connection that held, later and later after those that did not. On each
connection, and regularly on one that holds, the list of tools is read and reported; a call is only
made when what is listed is what was approved.
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
#: Seconds to connect and to read the list of tools; between two readings it asked for itself.
PATIENCE, CALM = 30.0, 5.0
#: Seconds a connection must hold to count as one that did; the longest wait for the next.
HELD, LONGEST_WAIT = 30.0, 60.0
#: Seconds to end a child in every way there is, and a little more.
ENDING = 10.0
#: Seconds of silence after the deadline of a call until its connection is given up.
SLACK = 15.0
STALE = "its definition changed; an administrator must approve it again"

State = Literal["connecting", "connected", "failed", "idle"]


@dataclass(frozen=True, slots=True)
class ServerStatus:
    state: State
    error: str = ""
    says: str = ""


class Listener(Protocol):
    """Who is told how a server stands and what it lists."""

    async def stands(self, server: str, standing: ServerStatus) -> None: ...

    async def lists(self, server: str, tools: tuple[Listed, ...]) -> None: ...


class Connection:
    """A server's task and what is known of it."""

    def __init__(self, server: Server, listener: Listener) -> None:
        self.server, self._listener = server, listener
        self.standing = ServerStatus("connecting")
        self._session: ClientSession | None = None
        self._digests: dict[str, str] = {}
        #: connected or not for now; to look at the list; to leave this connection
        self._settled, self._asked, self._over = (asyncio.Event() for _ in range(3))
        self._lost_because = ""
        self._is_ending, self._since = False, math.inf
        #: how long the server is waited for, while it is
        self._patience: asyncio.Timeout | None = None
        self._task = asyncio.create_task(self._live(), name=f"mcp-{server.name}")

    def ask(self) -> None:
        """Look at the list of tools soon; connect now if it waits to."""
        self._asked.set()

    async def end(self) -> None:
        """Leave the server; its task ends in a bounded time."""
        self._is_ending = True
        self._over.set()
        if self._patience is not None and not self._patience.expired():
            # Nobody waits any more for a server that does not answer.
            self._patience.reschedule(0)
        _, late = await asyncio.wait([self._task], timeout=ENDING)
        if late:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=ENDING)

    async def call(self, tool: str, digest: str, arguments: dict[str, Any]) -> CallToolResult:
        """Call a tool of which the definition with this digest was approved."""
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
                self._lose("It has begun anew.", session)
                raise ServerError(
                    "The server has begun anew and did not run it: try again."
                ) from error
            if error.error.code == CONNECTION_CLOSED:
                self._lose("The connection was closed.", session)
                raise ServerError(
                    "The connection to the server was lost during the call. The outcome is unknown:"
                    " check before repeating."
                ) from error
            raise ServerError(self.server.unsaid(describe_error(error))) from error

    async def _connected(self) -> ClientSession:
        if self.standing.state == "connecting":
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    await self._settled.wait()
        if self._session is None or self._lost_because:
            why = self.standing.error or "It is not connected yet."
            raise ServerError(f"The server {self.server.name} cannot be used now. {why}")
        return self._session

    def _lose(self, why: str, session: ClientSession | None = None) -> None:
        """Have the task begin anew; who calls meanwhile waits for how that ends."""
        if session is not self._session and session is not None:
            return
        self._lost_because = self._lost_because or why
        self.standing = ServerStatus("connecting")
        self._settled.clear()
        self._over.set()

    def _goes_on(self) -> bool:
        return not self._is_ending

    async def _live(self) -> None:
        failures = 0
        while self._goes_on():
            await self._stand(ServerStatus("connecting"))
            self._since = math.inf
            why = await self._hold()
            has_held = asyncio.get_running_loop().time() - self._since > HELD
            failures = 0 if has_held else failures + 1
            self._over.clear()
            if not self._goes_on():
                break
            await self._stand(ServerStatus("failed", why))
            await _wait_for_any(min(2.0**failures, LONGEST_WAIT) - 1, self._asked, self._over)
        await self._stand(ServerStatus("idle"))

    async def _hold(self) -> str:
        """Connect and stay connected; give why that came to an end."""
        from tools.mcp.session import describe_error, find_first_error

        self._lost_because = ""
        self._over.clear()
        if not self._goes_on():
            return ""
        try:
            async with AsyncExitStack() as stack:
                await self._serve(stack)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            cause = find_first_error(error)
            # Most errors follow from the loss; that a rule was broken is why there is one.
            is_rule = isinstance(cause, ServerError)
            if is_rule or not self._lost_because:
                return self.server.unsaid(describe_error(cause))
            return self._lost_because
        finally:
            self._session = None
            self._settled.clear()
        return self._lost_because

    async def _serve(self, stack: AsyncExitStack) -> None:
        from tools.mcp.session import describe_server, make_client, read_listing

        async with self._patiently():
            client = await stack.enter_async_context(make_client(self._transport(), self.ask))
            tools = await read_listing(self.server, client.session)
        self._session = client.session
        self._since = asyncio.get_running_loop().time()
        while not self._over.is_set():
            self._asked.clear()
            await self._heard(tools)
            await self._stand(ServerStatus("connected", says=describe_server(client.session)))
            await _wait_for_any(CALM, self._over)
            await _wait_for_any(self.server.check_seconds, self._over, self._asked)
            if not self._over.is_set():
                async with self._patiently():
                    tools = await read_listing(self.server, client.session)

    @contextlib.asynccontextmanager
    async def _patiently(self) -> AsyncIterator[None]:
        async with asyncio.timeout(PATIENCE) as patience:
            self._patience = patience
            try:
                yield
            finally:
                self._patience = None

    async def _heard(self, tools: tuple[Listed, ...]) -> None:
        self._digests = {tool.name: tool.digest for tool in tools if not tool.flaw}
        await _notify(self._listener.lists(self.server.name, tools))

    async def _stand(self, standing: ServerStatus) -> None:
        self.standing = standing
        if standing.state in ("connected", "failed"):
            self._settled.set()
        else:
            self._settled.clear()
        await _notify(self._listener.stands(self.server.name, standing))

    def _transport(self) -> Transport:
        from tools.mcp.http import connect_http
        from tools.mcp.stdio import connect_stdio

        place = self.server.place
        if isinstance(place, Address):
            return connect_http(place, self.server.deadline + SLACK)
        return connect_stdio(place, self._left)

    def _left(self, why: str, wrote: str) -> None:
        # Of one that worked it may be what people said to it.
        has_worked = self._session is not None
        if not has_worked and wrote:
            why = f"{why} It wrote: {self.server.unsaid(wrote)}"
        self._lose(why)


async def _notify(telling: Awaitable[None]) -> None:
    """Tell the listener; what it cannot take must not end a connection."""
    try:
        await telling
    except Exception:
        logger.exception("the state of an MCP server was not recorded")


async def _wait_for_any(seconds: float, *events: asyncio.Event) -> None:
    """Wait until one of the events happens, or so long."""
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()
