"""One log line for each reduction, applied or not: its trigger, what it freed, what it costs.

The line has figures and names only: what a rejected summary lacked, or why a hook objected, is
content and is in the record alone.
"""

from __future__ import annotations

import json
import logging

from conversations.models import Transformation

logger = logging.getLogger("agentweb.reductions")


def log_reduction(*, transformation: Transformation, **_: object) -> None:
    """Write the line; receiver of `transformation_recorded`, sent after the commit."""
    row = transformation
    decision = json.loads(row.decision) if row.decision else {}
    fields = {
        "kind": row.kind,
        "outcome": row.outcome,
        "setting": row.setting,
        "figure": row.number,
        "threshold": row.threshold,
        "source": row.source,
        "tokens_before": row.tokens_before,
        "tokens_after": row.tokens_after,
        "why": decision.get("why", ""),
        "cost_micros": decision.get("cost", 0),
        "saved_micros_a_call": decision.get("saved_each", 0),
        "conversation": row.conversation_id,
        "entry": row.seq,
        "summary_call": row.summary_call_id,
        "by_hand": row.actor_id is not None,
    }
    logger.info("reduction", extra={"fields": fields})
