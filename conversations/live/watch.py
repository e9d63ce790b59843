"""The watch of a process: every few seconds one look at what all its sockets rest on.

It closes sockets whose session is over or whose conversation is gone, gives a snapshot where the
conversation changed and nothing told so (a message between processes was lost, or somebody changed
it from outside), and lets every page hear that the server is alive. One look for all, because a
thousand idle pages that each ask for themselves keep a processor busy.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from conversations.agent.events import ServerLeaves
from conversations.db import run_db
from conversations.live import render
from conversations.live.relay import relay
from conversations.transcript.marks import Mark, good_sessions, marks

if TYPE_CHECKING:
    from conversations.live.consumer import ChatConsumer

logger = logging.getLogger("agentweb.sockets")
#: Seconds between two looks, and looks between two signs of life.
SECONDS, BEAT = 5.0, 2
#: Why a socket is closed for good; the page asks for the log-in, or says that it is over.
LOGGED_OUT, GONE = 4401, 4404
#: Sockets that are told before others have a turn.
AT_ONCE = 50
ALIVE = "<!-- alive -->"


class Watch:
    """The open sockets of this process."""

    def __init__(self) -> None:
        self._sockets: set[ChatConsumer] = set()
        self._sessions: dict[str, str] = {}
        #: What pages may not show yet, and the number of their frames at the last look.
        self._doubts: dict[int, tuple[Mark, int]] = {}
        self._looks = 0
        self._task: asyncio.Task[None] | None = None

    def add(self, socket: ChatConsumer) -> None:
        self._sockets.add(socket)
        if self._task is None:
            self._task = asyncio.create_task(self._look_regularly(), name="watch")

    def remove(self, socket: ChatConsumer) -> None:
        """Forget it; with the last one the watch ends."""
        self._sockets.discard(socket)
        if not self._sockets and self._task is not None:
            self._task.cancel()
            self._task = None
            self._sessions, self._doubts = {}, {}

    def count(self, owner_id: int) -> int:
        """Count the sockets of one person."""
        return sum(socket.conversation.owner_id == owner_id for socket in self._sockets)

    async def farewell(self) -> None:
        """Tell every page that the server is about to stop."""
        await self._say(render.text(ServerLeaves()))

    async def _look_regularly(self) -> None:
        while True:
            await asyncio.sleep(SECONDS)
            try:
                await self.look()
            except Exception:
                logger.exception("the open pages could not be looked at; it is tried again")

    async def look(self) -> None:
        """Look once."""
        sockets = [socket for socket in self._sockets if not socket.is_ended]
        asked = {socket.session_key: socket.conversation.owner_id for socket in sockets}
        self._sessions = await run_db(good_sessions, asked, self._sessions)
        present = await run_db(marks, {socket.conversation.pk for socket in sockets})
        for socket in sockets:
            socket.received = 0
            if socket.session_key not in self._sessions:
                await socket.end(LOGGED_OUT)
            elif socket.conversation.pk not in present:
                await socket.end(GONE)
        self._mend(sockets, present)
        self._looks += 1
        if self._looks % BEAT == 0:
            await self._say(ALIVE)

    def _mend(self, sockets: list[ChatConsumer], present: dict[int, Mark]) -> None:
        """Give a snapshot where a page may show something else than there is.

        In one process what frames told is what there is. A frame of another process may have been
        lost behind one that came: there only what was rendered of a whole turn, or a snapshot, is
        certain, and the pages are given the rest once nothing more comes.
        """
        before, self._doubts = self._doubts, {}
        for socket in sockets:
            key, topic = socket.conversation.pk, socket.topic
            mark = present.get(key)
            if topic is None or mark is None or socket.shown is None:
                # Gone, or its first snapshot is still on its way.
                continue
            if mark in (topic.shown, socket.shown):
                continue
            is_quiet = before.get(key, (None, topic.position))[1] == topic.position
            if not relay.is_open and key in before and not is_quiet:
                topic.shown = mark
            elif is_quiet and before.get(key, (None,))[0] == mark:
                topic.renew()
                topic.shown = mark
            else:
                self._doubts[key] = mark, topic.position

    async def _say(self, frame: str) -> None:
        for number, socket in enumerate(list(self._sockets)):
            if not socket.is_ended:
                await socket.say(frame)
            if number % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)


watch = Watch()
