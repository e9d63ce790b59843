"""What a process does besides answering requests: relay messages, run turns, sweep.

In the embedded setup one process does everything. Scaled out, web processes serve pages and workers
run turns. Each process takes over what dead processes left, so any of them may die.
"""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import Coroutine
from typing import Any

from django.conf import settings
from django.db import connection

from conversations.accounts.account_events import sweep_account_events
from conversations.accounts.sessions import sweep_sessions
from conversations.accounts.throttle import sweep_log_ins
from conversations.alerts.delivery import deliver_alerts
from conversations.alerts.outbox import forget_deliveries
from conversations.audit.anchors import anchor_if_due
from conversations.budgets.usage.closed_days import close_days
from conversations.conf import conf
from conversations.db import run_db
from conversations.files.attachments import sweep_unsent
from conversations.files.workspace import sweep_workspaces
from conversations.library.erase import erase_due_conversations
from conversations.library.erase_proof import purge_if_due
from conversations.library.impersonations import end_expired_impersonations
from conversations.library.retention import apply_retention
from conversations.live.publish import handle_message
from conversations.live.relay import Message, relay
from conversations.live.watch import watch
from conversations.runtime.supervisor import supervisor
from conversations.runtime.sweep import sweep_turns
from conversations.telemetry.event_loop_lag import pulse
from conversations.turns.call_counts import refresh_continuation
from conversations.turns.side_calls import close_lost_side_calls
from tools.isolation.isolated_calls import start_call_server

logger = logging.getLogger("agentweb.turns")
#: Seconds between two sweeps; sweeps between two rounds of maintenance unless beat schedules it.
SWEEP_SECONDS, TIDY_SWEEPS = 5.0, 12
#: Seconds between two sweeps of alerts unless beat schedules them.
ALERT_SECONDS = 15.0
#: Sweeps between two updates of how long conversations continue: an hour.
LEARN_SWEEPS = 720
#: Seconds after the drain of the turns at which the process exits in any case.
GRACE = 15.0


class Process:
    """This process, from start to drain."""

    def __init__(self) -> None:
        self._sweeper: asyncio.Task[None] | None = None
        self._alerter: asyncio.Task[None] | None = None
        self._runs_turns = False
        self._loop: asyncio.AbstractEventLoop | None = None

    async def start(self, *, runs_turns: bool) -> None:
        """Start; returns once turns can be run here, if this process runs any."""
        self._runs_turns, self._loop = runs_turns, asyncio.get_running_loop()
        pulse.start()
        await relay.start(_receive)
        if runs_turns:
            # Beside each other: what a person sends before a dead process' turn is taken over is
            # queued behind it, and waits for them where that turn can only be ended.
            await asyncio.gather(
                asyncio.to_thread(start_call_server),
                supervisor.start(is_alone=connection.vendor == "sqlite"),
            )
        self._sweeper = asyncio.create_task(self._sweep_regularly(), name="sweeper")
        if conf.run_turns_in == "web":
            self._alerter = asyncio.create_task(_alert_regularly(), name="alerter")

    async def drain(self) -> None:
        """Announce the stop to pages, end or hand over turns, and shut down in bounded time."""
        work = asyncio.create_task(self._drain(), name="drain")
        _, late = await asyncio.wait([work], timeout=self._find_drain_seconds() + GRACE)
        if late:
            where = io.StringIO()
            work.print_stack(file=where)
            logger.error("the process could not be drained in time, and goes\n%s", where.getvalue())
        else:
            work.result()

    async def _drain(self) -> None:
        for task in (self._sweeper, self._alerter):
            if task is not None:
                task.cancel()
        await watch.announce_stop()
        if self._runs_turns:
            await supervisor.drain(self._find_drain_seconds())
        await relay.stop()
        pulse.stop()

    def _find_drain_seconds(self) -> int:
        is_worker = self._runs_turns and conf.run_turns_in == "worker"
        return conf.worker_drain_seconds if is_worker else conf.drain_seconds

    def do(self, work: Coroutine[Any, Any, object]) -> None:
        """Run a coroutine on this process' loop and wait for it, from a worker thread."""
        if self._loop is None:
            work.close()
            raise RuntimeError("this process is no worker: start one with manage.py worker")
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def sweep(self) -> None:
        """Take over turns of dead processes; start waiting ones if turns run here."""
        if self._runs_turns:
            await supervisor.sweep()
        else:
            await sweep_turns(())

    async def _sweep_regularly(self) -> None:
        sweeps = 0
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            sweeps += 1
            try:
                await self.sweep()
                if self._runs_turns and sweeps % LEARN_SWEEPS == 1:
                    await run_db(refresh_continuation)
                if sweeps % TIDY_SWEEPS == 0 and conf.run_turns_in == "web":
                    await run_maintenance()
                elif sweeps % TIDY_SWEEPS == 0 and settings.MIGRATE_DATABASE:
                    # The workers' role does not own the tables.
                    await run_db(purge_if_due)
            except Exception:
                logger.exception("the sweep failed; it is tried again")


async def _alert_regularly() -> None:
    """Send alerts beside the sweep of turns, which a slow receiver does not hold up."""
    while True:
        await asyncio.sleep(ALERT_SECONDS)
        try:
            await deliver_alerts()
        except Exception:
            logger.exception("the sweep of alerts failed; it is tried again")


async def run_maintenance() -> None:
    """Do what is not urgent: apply rules, erase what is due, remove files, anchor the chains.

    A job that fails is logged and holds up no other.
    """
    for work in (
        close_lost_side_calls,
        close_days,
        apply_retention,
        erase_due_conversations,
        purge_if_due,
        sweep_unsent,
        sweep_workspaces,
        sweep_log_ins,
        sweep_account_events,
        sweep_sessions,
        forget_deliveries,
        end_expired_impersonations,
        anchor_if_due,
    ):
        try:
            await run_db(work)
        except Exception:
            logger.exception("%s failed; it is tried again", work.__name__)


async def _receive(message: Message) -> None:
    match message["type"]:
        case "stop":
            supervisor.stop(int(message["turn"]))
        case _:
            await handle_message(message)


process = Process()
