"""The watch of a process: one check of all its open pages every few seconds.

It compares the versions that pages show with the database, so that a page which missed the last
message between processes, or a change made outside the server, gets a snapshot. It closes sockets
whose session is over or whose conversation is gone. It sends every page a sign of life with the
version that the page shows by then; a page that loses its server, however that ends, names it when
it comes back, and needs nothing if it is still the newest. There is one check for all, because with
one for each of a thousand idle pages a processor would be busy.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from conversations.agent.events import ServerLeaves
from conversations.db import run_db
from conversations.live import render
from conversations.live.hub import hub
from conversations.live.socket_access import SessionCheck
from conversations.log.page_version import read_versions

if TYPE_CHECKING:
    from conversations.live.consumer import ChatConsumer

logger = logging.getLogger("agentweb.sockets")
#: Seconds between two checks; checks between two signs of life.
SECONDS, BEAT = 5.0, 2
#: Close code when the conversation is gone; the page says so and does not reconnect.
GONE = 4404
#: Sockets served in a row before other tasks of the loop may run.
AT_ONCE = 50


def write_sign(socket: ChatConsumer) -> str:
    """Return a sign of life for a page, as `connection.js` reads it (`BEAT`).

    Its version is that of what the page was sent before; it is missing until the page has one.
    """
    version = socket.shown
    return "<!-- alive -->" if version is None else f"<!-- alive {version} -->"


def _read_state(
    sessions: SessionCheck, owners: Mapping[str, int], keys: Collection[int]
) -> dict[int, int]:
    """Read which sessions are still valid; return the versions of these conversations."""
    sessions.read(owners)
    return read_versions(keys)


class Watch:
    """The open sockets of this process."""

    def __init__(self) -> None:
        self._sockets: set[ChatConsumer] = set()
        self._sessions = SessionCheck()
        #: The versions in the database at the last check; pages must show them at this one.
        self._due: dict[int, int] = {}
        self._checks = 0
        self._task: asyncio.Task[None] | None = None

    def add(self, socket: ChatConsumer) -> None:
        self._sockets.add(socket)
        if self._task is None:
            self._task = asyncio.create_task(self._check_regularly(), name="watch")

    def remove(self, socket: ChatConsumer) -> None:
        """Remove a socket; the watch stops with the last one."""
        self._sockets.discard(socket)
        if not self._sockets and self._task is not None:
            self._task.cancel()
            self._task, self._sessions, self._due = None, SessionCheck(), {}

    def count(self, owner_id: int) -> int:
        return sum(socket.conversation.owner_id == owner_id for socket in self._sockets)

    async def announce_stop(self) -> None:
        """Tell every page which version it shows, and that the server is about to stop."""
        frame = render.render_own(ServerLeaves())
        await self._send(write_sign)
        await self._send(lambda _: frame)

    async def _check_regularly(self) -> None:
        while True:
            await asyncio.sleep(SECONDS)
            try:
                await self.check()
            except Exception:
                logger.exception("the open pages could not be checked; it is tried again")

    async def check(self) -> None:
        """Check sessions, conversations and versions of all open pages once."""
        sockets = [socket for socket in self._sockets if not socket.is_ended]
        sessions = self._sessions
        owners = {socket.session_key: socket.conversation.owner_id for socket in sockets}
        keys = {socket.conversation.pk for socket in sockets}
        versions = await run_db(_read_state, sessions, owners, keys)
        await sessions.end_invalid(sockets)
        for socket in sockets:
            socket.received = 0
            if not socket.is_ended and socket.conversation.pk not in versions:
                await socket.end(GONE)
        for key, topic in hub.list_open().items():
            # Frames of changes since the last check may still be in transit.
            if topic.is_behind(due := self._due.get(key, 0)):
                topic.demand_version(due)
        self._due = versions
        self._checks += 1
        if self._checks % BEAT == 0:
            await self._send(write_sign)

    async def _send(self, make_frame: Callable[[ChatConsumer], str]) -> None:
        for number, socket in enumerate(list(self._sockets)):
            if not socket.is_ended:
                await socket.send_if_free(make_frame(socket))
            if number % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)


watch = Watch()
