"""The sweep that every process repeats: turns of dead workers, expired questions, lost calls."""

from __future__ import annotations

import logging
from collections.abc import Container
from functools import cache
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import QuerySet

from conversations.agent.events import TurnChanged, TurnClosed
from conversations.conf import conf
from conversations.db import run_db
from conversations.live.publish import announce
from conversations.reductions.proposals import (
    expire_proposals,
    filter_expired_proposals,
    filter_unclaimed_proposals,
    list_unclaimed_proposals,
)
from conversations.telemetry.metrics import SWEEP_RUNS
from conversations.toolbox.approvals import (
    expire_approvals,
    filter_late_questions,
    list_turns_with_late_questions,
)
from conversations.turns import takeovers
from conversations.turns.side_calls import close_lost_side_calls, filter_lost_side_calls

logger = logging.getLogger("agentweb.turns")


class Waiting(NamedTuple):
    """The ids of what no process has claimed."""

    turns: list[int]
    proposals: list[int]


@cache
def _write_look(*_: int) -> tuple[str, tuple[Any, ...]]:
    """Write the statement that says whether there is anything to sweep, and its values.

    It depends on the settings that are given. The ORM writes each part of it, which takes several
    times as long as the database takes for all of them.
    """
    rows: tuple[QuerySet[Any], ...] = (
        takeovers.filter_expired_turns(),
        takeovers.filter_claimable_turns(),
        filter_late_questions(),
        filter_lost_side_calls(recent=True),
        filter_expired_proposals(),
        filter_unclaimed_proposals(),
    )
    parts = [one.order_by().values("pk").query.sql_with_params() for one in rows]
    looks = " OR ".join(f"EXISTS ({statement})" for statement, _ in parts)
    return f"SELECT {looks}", tuple(value for _, values in parts for value in values)


def finds_work() -> bool:
    """Return whether a sweep finds anything; one statement, for mostly it does not."""
    with connection.cursor() as cursor:
        cursor.execute(*_write_look(conf.attempt_seconds, conf.lease_seconds))
        return bool(cursor.fetchone()[0])


async def sweep_turns(mine: Container[int], *, everything: bool = False) -> Waiting:
    """Take over turns whose lease expired, except `mine`; return what waits for a process."""
    SWEEP_RUNS.add()
    if not everything and not await run_db(finds_work):
        return Waiting([], [])
    expired, late = await run_db(_list_late, everything=everything)
    for turn_id in expired:
        if turn_id in mine:
            continue
        turn = await run_db(takeovers.take_over_turn, turn_id=turn_id, everything=everything)
        if turn is not None:
            logger.warning("turn %s lost its worker: %s", turn_id, turn.state)
            if not turn.is_live:
                await announce(turn.conversation_id, TurnClosed(turn.number))
    for turn_id in late:
        turn = await run_db(expire_approvals, turn_id=turn_id)
        if turn is not None:
            await announce(turn.conversation_id, TurnChanged(turn.number))
    return await run_db(_close_lost, everything=everything)


def _list_late(*, everything: bool) -> tuple[list[int], list[int]]:
    """Return the turns whose lease, and those whose question, has expired."""
    return takeovers.list_expired_turns(everything=everything), list_turns_with_late_questions()


def _close_lost(*, everything: bool) -> Waiting:
    """Close what dead processes left beside their turns; return what waits for a process."""
    close_lost_side_calls(everything=everything, recent=not everything)
    expire_proposals(everything=everything)
    return Waiting(takeovers.list_claimable_turns(), list_unclaimed_proposals())
