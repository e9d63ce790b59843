"""The supervisor runs the turns of a process. A turn belongs to the server, not to a socket or tab.

Every turn is a task of one process' supervisor, in a web process or a worker; the lease in the
database says which of them may write. A stop is stored as a row first, then signalled.
turns/takeovers.py handles the turns of dead processes. A process that shuts down hands its turns
over to others at their next point between two calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from django.conf import settings

from conversations.agent.stop import Stopped, Switch
from conversations.conf import conf
from conversations.db import run_db
from conversations.runtime.begin import claim_turn
from conversations.runtime.mcp_servers import pool_synchronizer
from conversations.runtime.proposals import write_proposal
from conversations.runtime.side_calls import SideCallTasks
from conversations.runtime.sweep import sweep_turns
from conversations.runtime.titles import write_title
from conversations.runtime.turn import TurnRun
from conversations.turns.titles import has_titles

if TYPE_CHECKING:
    from conversations.claude.client import Claude
    from conversations.log.leases import Lease

logger = logging.getLogger("agentweb.turns")
#: Turns in this process from which on titles wait, and the seconds that one waits at most.
QUIET, TITLE_WAITS = 8, 60.0
OWNER = f"{socket.gethostname()}:{os.getpid()}"


class Supervisor:
    """The turns of this process."""

    def __init__(self) -> None:
        self._tasks: dict[int, asyncio.Task[None]] = {}
        #: Turns that wait for a free slot in this process.
        self._waiting: deque[int] = deque()
        self._runs: dict[int, TurnRun] = {}
        #: The language of the pages of another process, by the turn that they wait for.
        self._languages: dict[int, str] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._claude: Claude | None = None
        self._side_calls = SideCallTasks()
        self._is_draining = False
        #: Set while few turns run here.
        self._quiet = asyncio.Event()
        self._quiet.set()

    @property
    def running(self) -> int:
        """Return the number of turns that run here."""
        return len(self._tasks)

    async def start(self, *, is_alone: bool) -> None:
        """Start running turns; `is_alone` says that no other process can be running any."""
        # Imported late: the SDK is more than half of what a process imports.
        from conversations.claude.client import Claude, Deadlines

        self._loop = asyncio.get_running_loop()
        self._claude = Claude(
            api_key=settings.ANTHROPIC_API_KEY or "built-in-emulator",
            base_url=settings.ANTHROPIC_BASE_URL,
            deadlines=Deadlines(
                conf.first_event_seconds, conf.read_timeout_seconds, conf.attempt_seconds
            ),
        )
        await pool_synchronizer.start()
        await self.sweep(everything=is_alone)

    async def sweep(self, *, everything: bool = False) -> None:
        """Take over turns of dead workers and start waiting ones, up to the free slots.

        Summaries whose wake-up was lost are started, too.
        """
        found = await sweep_turns(self._tasks, everything=everything)
        for turn_id in found.turns[: max(0, conf.process_turns - len(self._tasks))]:
            self.launch(turn_id)
        for proposal_id in found.proposals:
            self._propose(proposal_id)

    def wake(self, turn_id: int) -> None:
        """Start a waiting turn soon, from any thread; the sweep finds it if this fails."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.launch, turn_id)

    def work_off(self, turn_id: int, language: str | None = None) -> None:
        """Run a turn and wait for its end, from a worker thread.

        `language` is that of the pages that show its conversation in the process that asks for it.
        """
        if self._loop is None:
            raise RuntimeError("no turns run in this process: start it with manage.py worker")
        work = self._work_off(turn_id, language)
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _work_off(self, turn_id: int, language: str | None) -> None:
        if language is not None:
            self._languages[turn_id] = language
        self.launch(turn_id)
        while (task := self._tasks.get(turn_id)) is not None:
            await asyncio.wait([task])

    def propose(self, proposal_id: int) -> None:
        """Request a summary from the model soon, from any thread; the sweep does if this fails."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._propose, proposal_id)

    def _propose(self, proposal_id: int) -> None:
        if self._claude is not None and not self._is_draining:
            work = partial(write_proposal, proposal_id, self._claude)
            self._side_calls.begin(f"proposal-{proposal_id}", work)

    def stop(self, turn_id: int) -> None:
        """Signal a stop to a turn that runs here. Callable from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._request, turn_id, "user")

    def _request(self, turn_id: int, reason: str) -> None:
        if (run := self._runs.get(turn_id)) is not None:
            run.switch.request(reason)

    def launch(self, turn_id: int) -> None:
        """Start a turn if there is a free slot, else queue it. Call on the loop only."""
        if turn_id in self._tasks:
            # A person may answer an approval question before the task that asked it has ended.
            self._tasks[turn_id].add_done_callback(lambda _: self.launch(turn_id))
        elif self._is_draining:
            return
        elif len(self._tasks) >= conf.process_turns:
            if turn_id not in self._waiting:
                self._waiting.append(turn_id)
        else:
            task = asyncio.create_task(self._run(turn_id), name=f"turn-{turn_id}")
            self._tasks[turn_id] = task
            if len(self._tasks) >= QUIET:
                self._quiet.clear()
            task.add_done_callback(lambda _: self._ended(turn_id))

    def _ended(self, turn_id: int) -> None:
        self._tasks.pop(turn_id, None)
        if len(self._tasks) < QUIET:
            self._quiet.set()
        if self._waiting:
            self.launch(self._waiting.popleft())

    async def drain(self, seconds: float) -> None:
        """Let running turns end or hand them over between two calls; stop the rest.

        Queued turns wait for another process or for the next start.
        """
        self._is_draining = True
        for run in self._runs.values():
            run.switch.leave()
        if tasks := list(self._tasks.values()):
            await asyncio.wait(tasks, timeout=seconds)
        for turn_id in list(self._runs):
            self._request(turn_id, "shutdown")
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=5)
        await self._side_calls.drain()
        await pool_synchronizer.stop()
        if self._claude is not None:
            await self._claude.close()

    async def _run(self, turn_id: int) -> None:
        if self._claude is None:
            return
        language = self._languages.pop(turn_id, None)
        claimed = await run_db(claim_turn, turn_id=turn_id, owner=OWNER)
        if claimed is None:
            return
        lease = claimed.lease
        run = self._runs[turn_id] = TurnRun(claimed, self._claude, language)
        if self._is_draining:
            run.switch.leave()
        try:
            outcome = await run.run()
        finally:
            self._runs.pop(turn_id, None)
        if outcome.is_done:
            claimed.cache_fold()
        if outcome.following is not None:
            if language is not None:
                self._languages[outcome.following] = language
            self.launch(outcome.following)
        if outcome.is_done and has_titles() and claimed.may_be_named and not self._is_draining:
            self._side_calls.begin(f"title-{lease.turn_id}", partial(self._write_title, lease))

    async def _write_title(self, lease: Lease, switch: Switch) -> None:
        """Write a title once few turns run here, so that nobody waits for a word because of it."""
        if self._claude is None:
            return
        try:
            with switch.interruptible(), contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TITLE_WAITS):
                    await self._quiet.wait()
        except Stopped:
            return
        await write_title(lease, self._claude, switch)


supervisor = Supervisor()
