"""Running turns: a turn belongs to the server, not to a socket or a tab.

Embedded, every turn is a task of one supervisor in the serving process; the database's lease says
who may write, so the same run could live in a worker. A stop is a row first and a wake-up second.
What becomes of a turn whose process died says services/takeovers.py.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
import time
from functools import partial
from typing import TYPE_CHECKING

from django.conf import settings

from conversations.adapters import TurnCalls, TurnLog, TurnTools
from conversations.claude import Claude, Deadlines
from conversations.conf import conf
from conversations.context.errors import ContextError
from conversations.db import db
from conversations.errands import Errands
from conversations.events import Event, MeterMoved, TurnChanged, TurnClosed, TurnOpened
from conversations.jobs import job
from conversations.ports import Finish, Ports
from conversations.proposing import propose
from conversations.queries.begun import begun
from conversations.queries.jobs import job_facts
from conversations.runner import Runner
from conversations.servers import keeper
from conversations.services import leases
from conversations.services import turns as services
from conversations.services.attachments import sweep_unsent
from conversations.services.erase import erase_due
from conversations.services.leases import TTL, Lease
from conversations.services.workspace import sweep_workspaces
from conversations.stage import TurnStage, announce
from conversations.sweeping import sweep
from conversations.switch import Stopped, Switch
from conversations.titling import name

if TYPE_CHECKING:
    from conversations.models import Turn

logger = logging.getLogger("agentweb.turns")
OWNER = f"{socket.gethostname()}:{os.getpid()}"
SWEEP_SECONDS = 10


class Supervisor:
    """The turns of this process."""

    def __init__(self) -> None:
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._switches: dict[int, Switch] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._claude: Claude | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self._errands = Errands()
        self._announcements: set[asyncio.Task[None]] = set()
        self._is_draining = False

    async def start(self, *, is_alone: bool) -> None:
        """Begin to serve; `is_alone` says that no other process can be running turns."""
        self._loop = asyncio.get_running_loop()
        self._claude = Claude(
            api_key=settings.ANTHROPIC_API_KEY or "built-in-emulator",
            base_url=settings.ANTHROPIC_BASE_URL,
            deadlines=Deadlines(
                conf.first_event_seconds, conf.silence_seconds, conf.attempt_seconds
            ),
        )
        await keeper.start()
        await self.sweep(everything=is_alone)
        self._sweeper = asyncio.create_task(self._sweep_regularly())

    async def sweep(self, *, everything: bool = False) -> None:
        """Take the turns of dead workers and start those that wait."""
        for turn_id in await sweep(self._tasks, everything=everything):
            self.launch(turn_id)

    async def _sweep_regularly(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            try:
                await self.sweep()
                await db(erase_due)
                await db(sweep_unsent)
                await db(sweep_workspaces)
            except Exception:
                logger.exception("the sweep failed; it is tried again")

    def wake(self, turn_id: int) -> None:
        """Start a turn that waits soon, from any thread; the sweep finds it if nobody can."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.launch, turn_id)

    def propose(self, proposal_id: int) -> None:
        """Ask the model for a summary that a person wants, from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._propose, proposal_id)

    def _propose(self, proposal_id: int) -> None:
        if self._claude is not None and not self._is_draining:
            work = partial(propose, proposal_id, self._claude)
            self._errands.begin(f"proposal-{proposal_id}", work)

    def stop(self, turn: Turn) -> None:
        """Wake a turn that was asked to stop, from any thread; show it if nobody runs it."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop, turn.pk, turn.conversation_id, turn.number)

    def _stop(self, turn_id: int, conversation_id: int, number: int) -> None:
        if turn_id in self._tasks:
            self._request(turn_id, "user")
        else:
            task = asyncio.create_task(announce(conversation_id, TurnClosed(number)))
            self._announcements.add(task)
            task.add_done_callback(self._announcements.discard)

    def _request(self, turn_id: int, reason: str) -> None:
        if (switch := self._switches.get(turn_id)) is not None:
            switch.request(reason)

    def launch(self, turn_id: int) -> None:
        if turn_id in self._tasks:
            # A question may be answered before the task that asked is over.
            self._tasks[turn_id].add_done_callback(lambda _: self.launch(turn_id))
        elif not self._is_draining:
            task = asyncio.create_task(self._run(turn_id), name=f"turn-{turn_id}")
            self._tasks[turn_id] = task
            task.add_done_callback(lambda _: self._tasks.pop(turn_id, None))

    async def drain(self, seconds: float) -> None:
        """Let running turns end, stop those that do not; what is queued waits for a next start."""
        self._is_draining = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        if tasks := list(self._tasks.values()):
            await asyncio.wait(tasks, timeout=seconds)
        for turn_id in list(self._switches):
            self._request(turn_id, "shutdown")
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=5)
        await self._errands.drain()
        await keeper.stop()
        if self._claude is not None:
            await self._claude.close()

    async def _run(self, turn_id: int) -> None:
        if self._claude is None:
            return
        lease = await db(leases.claim_turn, turn_id=turn_id, owner=OWNER)
        if lease is None:
            return
        switch = self._switches[turn_id] = Switch()
        stage = TurnStage(lease)
        keeper = asyncio.create_task(self._keep(lease, switch))
        is_done, is_asked, following = False, False, None
        try:
            opened = TurnOpened if lease.generation == 1 else TurnChanged
            await _tell(stage, opened(lease.number))
            finish = await self._finish(lease, switch, stage, self._claude)
            is_asked = finish.state == "approval_wait"
            if not is_asked:
                following = await db(services.finish_turn, lease=lease, finish=finish)
            logger.info("turn %s: %s %s %s", turn_id, finish.state, finish.reason, finish.code)
            is_done = finish.state == "done"
        except Stopped:
            logger.warning("turn %s lost its lease", turn_id)
        except Exception:
            # The sweep interrupts it once its lease is over.
            logger.exception("turn %s could not be finished", turn_id)
        finally:
            keeper.cancel()
            self._switches.pop(turn_id, None)
            await _tell(stage, (TurnChanged if is_asked else TurnClosed)(lease.number))
            if following is not None:
                await _tell(stage, TurnOpened(following.number))
            await _tell(stage, MeterMoved())
            stage.close()
        if following is not None:
            self.launch(following.pk)
        if is_done and not self._is_draining:
            self._errands.begin(f"title-{lease.turn_id}", partial(name, lease, self._claude))

    async def _finish(
        self, lease: Lease, switch: Switch, stage: TurnStage, claude: Claude
    ) -> Finish:
        try:
            facts = await db(job_facts, lease.conversation_id)
            work, calls = job(facts), TurnCalls(lease, claude, facts.tools)
            ports = Ports(
                log=TurnLog(lease, work.model),
                calls=calls,
                model=calls,
                tools=TurnTools(lease, facts.tools, partial(_is_requested, switch), stage.progress),
                stage=stage,
                switch=switch,
                pause=asyncio.sleep,
                chance=random.random,
                now=time.time,
            )
            done = await db(begun, lease.turn_id)
            if await db(leases.renew_lease, lease=lease):
                switch.request("user")
            left = max(0.0, work.caps.seconds - lease.ran_seconds)
            late = asyncio.get_running_loop().call_later(left, switch.request, "time")
            try:
                return await Runner(work, ports, lease.number, done).run()
            finally:
                late.cancel()
        except ContextError as error:
            return Finish("failed", "", error.code, str(error))
        except Exception:
            logger.exception("turn %s failed", lease.turn_id)
            text = "Something went wrong on the server; it was logged."
            return Finish("failed", "", "internal", text)

    async def _keep(self, lease: Lease, switch: Switch) -> None:
        """Renew the lease and read the stop request; a lost lease stops the turn."""
        while True:
            await asyncio.sleep(TTL.total_seconds() / 3)
            try:
                if await db(leases.renew_lease, lease=lease):
                    switch.request("user")
            except Stopped:
                switch.request("lease")
                return
            except Exception:
                logger.exception("turn %s: the lease was not renewed", lease.turn_id)


async def _tell(stage: TurnStage, event: Event) -> None:
    """Show an event; one that cannot be shown must not keep a turn from its end."""
    try:
        await stage.tell(event)
    except Exception:
        logger.exception("%s was not shown", event)


def _is_requested(switch: Switch) -> bool:
    return bool(switch.reason)


supervisor = Supervisor()
