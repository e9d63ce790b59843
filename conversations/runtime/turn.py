"""One run of a turn in this process: from its claim to its end or its handover.

The lease is renewed during the run. In any case the outcome is published to the pages; an end that
could not be recorded is found by the sweep once the lease has expired.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from django.db import InterfaceError, OperationalError

from conversations.agent.events import Event, TurnChanged, TurnClosed, TurnOpened
from conversations.agent.finish import INTERNAL, NO_DATABASE
from conversations.agent.job import Job
from conversations.agent.loop import Runner
from conversations.agent.ports import Finish, Ports
from conversations.agent.resume import TurnProgress
from conversations.agent.stop import Stopped, Switch
from conversations.budgets.admission import choose_searches
from conversations.budgets.search_rounds import LEAST_SEARCHES
from conversations.conf import conf
from conversations.context.errors import ContextError
from conversations.context.policy.gauge import measure_context
from conversations.db import run_db, run_db_heartbeat
from conversations.live.turn_stream import TurnDisplay
from conversations.log import leases
from conversations.log.page_version import keep_own_steps
from conversations.log.settings_version import reading_settings
from conversations.runtime.adapters import TurnCalls, TurnLog, TurnTools
from conversations.runtime.begin import BegunTurn, ClaimedTurn
from conversations.runtime.job import build_job
from conversations.turns import turns
from conversations.turns.resume import load_progress

if TYPE_CHECKING:
    from conversations.claude.client import Claude
    from conversations.models import Turn

logger = logging.getLogger("agentweb.turns")
#: Renewals within one lease; the share of it after which a turn that could not renew stops itself,
#: which is before another process may take it over.
RENEWALS, LAST_SIGN = 3, 2 / 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run: whether the turn is done, and the id of the turn to run next."""

    is_done: bool = False
    following: int | None = None


class TurnRun:
    """The run of a turn whose lease this process holds."""

    def __init__(self, claimed: ClaimedTurn, claude: Claude, language: str | None = None) -> None:
        self._lease, self._claimed, self._claude = claimed.lease, claimed, claude
        self._calls: TurnCalls | None = None
        self._display = TurnDisplay(self._lease, language)
        self.switch = Switch()

    async def run(self) -> Outcome:
        """Run the turn to its end and publish it."""
        keep_own_steps()
        keeper = asyncio.create_task(self._keep())
        number, finish, following = self._lease.number, None, None
        try:
            if self._lease.is_first:
                await self._display.hold(TurnOpened(number))
            else:
                await self._show(TurnChanged(number))
            finish = await self._finish()
            await self._display.settle()
            if finish.state == "running":
                await run_db(leases.hand_over_turn, lease=self._lease)
            elif finish.state != "approval_wait":
                following = await self._end(finish)
            logger.info(
                "turn %s: %s %s %s", self._lease.turn_id, finish.state, finish.reason, finish.code
            )
        except Stopped:
            logger.warning("turn %s lost its lease", self._lease.turn_id)
        except Exception:
            # The sweep marks it interrupted once its lease has expired.
            logger.exception("turn %s could not be finished", self._lease.turn_id)
        finally:
            keeper.cancel()
            is_left = finish is not None and finish.state in ("approval_wait", "running")
            last: Event = TurnChanged(number) if is_left else TurnClosed(number)
            behind = [TurnOpened(following.number)] if following is not None else []
            await self._show(last, *behind)
            self._display.close()
        is_done = finish is not None and finish.state == "done"
        return Outcome(is_done, following.pk if following is not None else None)

    async def _end(self, finish: Finish) -> Turn | None:
        """Record the end of the turn, unless it was with the last call; return the next turn."""
        ended = self._calls.ended if self._calls is not None else None
        if ended is not None:
            return ended.following
        return await run_db(turns.finish_turn, lease=self._lease, finish=finish)

    async def _finish(self) -> Finish:
        lease, switch, display = self._lease, self.switch, self._display
        try:
            begun = self._claimed.demand_begun()
            facts = begun.facts
            work = await self._build_job(begun)
            calls = self._calls = TurnCalls(lease, self._claude, facts.tools, display)
            ports = Ports(
                log=TurnLog(lease, begun),
                calls=calls,
                model=calls,
                tools=TurnTools(
                    lease, facts.tools, partial(_is_requested, switch), display.progress
                ),
                display=display,
                switch=switch,
                pause=asyncio.sleep,
                chance=random.random,
                now=time.time,
                turn=lease.number,
            )
            # A turn that never ran checks for a stop request when its first call is opened.
            done = TurnProgress() if lease.is_first else await self._load_progress()
            left = max(0.0, work.caps.seconds - lease.ran_seconds)
            late = asyncio.get_running_loop().call_later(left, switch.request, "time")
            try:
                return await Runner(work, ports, lease.number, done).run()
            finally:
                late.cancel()
        except ContextError as error:
            return Finish("failed", "", error.code, str(error))
        except (OperationalError, InterfaceError):
            # The turn did not cause this, and it is unknown whether the last write was committed.
            logger.exception("turn %s: the database went away", lease.turn_id)
            return Finish("interrupted", "database", "interrupted", NO_DATABASE)
        except Exception:
            logger.exception("turn %s failed", lease.turn_id)
            return Finish("failed", "", "internal", INTERNAL)

    async def _build_job(self, begun: BegunTurn) -> Job:
        """Build the job, with as many searches as the budgets allow.

        Where no call was made before, no thinking depends on their number.
        """
        job, state = build_job(begun.facts), begun.state
        wanted = job.envelope.searches
        if wanted <= LEAST_SEARCHES or not state.bound_to:
            return job
        known = state.view, job.envelope.overhead, state.report, job.window
        most = await run_db(
            reading_settings()(choose_searches),
            user_id=self._lease.user_id,
            prices=begun.facts.prices,
            tokens=measure_context(*known).tokens,
            wanted=wanted,
        )
        return job.limit_searches(most)

    async def _load_progress(self) -> TurnProgress:
        """Read what the turn has done so far; request a stop if one was requested meanwhile."""
        if await run_db(leases.renew_lease, lease=self._lease):
            self.switch.request("user")
        return await run_db(load_progress, self._lease.turn_id)

    async def _keep(self) -> None:
        """Renew the lease and read stop requests; stop the turn before the lease is lost."""
        lease, switch = self._lease, self.switch
        pause = usual = conf.lease_seconds / RENEWALS
        last = time.monotonic()
        while time.monotonic() - last < conf.lease_seconds * LAST_SIGN:
            await asyncio.sleep(pause)
            pause, begun = min(1.0, usual), time.monotonic()
            try:
                if await run_db_heartbeat(leases.renew_lease, lease=lease):
                    switch.request("user")
                pause, last = usual, begun
            except Stopped:
                break
            except Exception:
                logger.exception("turn %s: the lease was not renewed", lease.turn_id)
        switch.request("lease")

    async def _show(self, *events: Event) -> None:
        """Publish events; a failure is logged and does not keep a turn from its end."""
        try:
            await self._display.publish(*events)
        except Exception:
            logger.exception("%s was not shown", events)


def _is_requested(switch: Switch) -> bool:
    return bool(switch.reason)
