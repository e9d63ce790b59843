"""The sweep that every process repeats: turns of dead workers, expired questions, lost calls."""

from __future__ import annotations

import logging
from collections.abc import Container

from conversations.agent.events import TurnChanged, TurnClosed
from conversations.db import run_db
from conversations.live.publish import announce
from conversations.reductions.proposals import expire_proposals
from conversations.telemetry.metrics import SWEEP_RUNS
from conversations.toolbox.approvals import expire_approvals, list_turns_with_late_questions
from conversations.turns import takeovers
from conversations.turns.side_calls import close_lost_side_calls

logger = logging.getLogger("agentweb.turns")


async def sweep_turns(mine: Container[int], *, everything: bool = False) -> list[int]:
    """Take over turns whose lease expired, except `mine`; return the ids of claimable turns."""
    SWEEP_RUNS.add()
    for turn_id in await run_db(takeovers.list_expired_turns, everything=everything):
        if turn_id in mine:
            continue
        turn = await run_db(takeovers.take_over_turn, turn_id=turn_id, everything=everything)
        if turn is not None:
            logger.warning("turn %s lost its worker: %s", turn_id, turn.state)
            if not turn.is_live:
                await announce(turn.conversation_id, TurnClosed(turn.number))
    for turn_id in await run_db(list_turns_with_late_questions):
        turn = await run_db(expire_approvals, turn_id=turn_id)
        if turn is not None:
            await announce(turn.conversation_id, TurnChanged(turn.number))
    await run_db(close_lost_side_calls, everything=everything, recent=not everything)
    await run_db(expire_proposals, everything=everything)
    return await run_db(takeovers.list_claimable_turns)
