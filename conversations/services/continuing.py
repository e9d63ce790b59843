"""Letting a cut answer go on.

Today's models take no beginning of an answer to finish. So the rest is asked for by a message of
ours that quotes how the answer ended; the turn says whose answer it continues, and a page shows
that and not our words.
"""

from __future__ import annotations

from uuid import uuid5

from django.db import transaction

from conversations.context import wire
from conversations.models import Turn
from conversations.queries.words import can_continue
from conversations.services.prompts import (
    Prompt,
    SendError,
    demand_idle,
    demand_slot,
    lock_for,
    open_turn,
    sent_before,
)

#: Characters of the end of an answer that are quoted.
QUOTED = 600
CUT = (
    "Your last answer was cut off. It ended with these words:\n\n{end}\n\n"
    "Go on exactly where it stopped. Do not repeat what is there, and do not mention the cut."
)
BROKEN_OFF = "You were interrupted. Go on where you stopped."


@transaction.atomic
def continue_turn(*, turn: Turn) -> Turn:
    """Ask for the rest of the last turn's answer; asked twice, it is the same turn."""
    row = lock_for(turn.conversation)
    turn.refresh_from_db()
    prompt = Prompt(_words(turn), uuid5(turn.public_id, "continue"), continues=turn)
    sent = sent_before(row, prompt)
    if sent is not None:
        return sent
    demand_idle(row)
    if turn.number != row.leaf:
        raise SendError("moved", "The conversation went on since then; write what you want next.")
    has_answer = turn.messages.filter(kind="answer").exists()
    if not can_continue(turn.state, turn.finish_reason, has_answer=has_answer):
        raise SendError("whole", "There is nothing of this answer that could go on.")
    demand_slot(row)
    return open_turn(row, prompt)


def _words(turn: Turn) -> str:
    last = turn.messages.order_by("-seq").first()
    blocks = wire.decode(last.content) if last is not None and last.kind == "answer" else []
    said = "\n\n".join(block["text"] for block in blocks if block["type"] == "text").strip()
    text = CUT.format(end=said[-QUOTED:]) if said else BROKEN_OFF
    return wire.encode([{"type": "text", "text": text}])
