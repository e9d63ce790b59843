"""The draft of a running answer, so that a crash keeps what was shown.

It exists as long as its call is open: a later checkpoint is dropped, and closing the call deletes
the draft. Otherwise the draft of a stored answer would be stored as a second answer. One that was
being saved while its call was closed may stay on PostgreSQL, and is never stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypedDict

from django.db import connection, transaction
from django.utils import timezone

from conversations.agent.stop import Stopped
from conversations.context.view import wire
from conversations.context.view.view import Message as ViewMessage
from conversations.log.append import append_message
from conversations.log.chain import lock_conversation
from conversations.log.findings import read_decodable
from conversations.log.leases import Lease, hold_lease
from conversations.log.texts import make_storable
from conversations.models import LIVE, Draft, Turn

_LIVE = ", ".join(["%s"] * len(LIVE))
_IS_OPEN = """NOT EXISTS (
    SELECT 1 FROM conversations_apiresult r WHERE r.call_id = conversations_draft.call_id
)"""
#: The lock prevents a takeover of the turn during the update.
_UPDATE_ONE = f"""
UPDATE conversations_draft SET text = %s, thinking = %s, updated_at = %s
WHERE turn_id IN (
    SELECT id FROM conversations_turn
    WHERE id = %s AND lease_generation = %s AND state IN ({_LIVE}) {{lock}}
) AND {_IS_OPEN}"""  # noqa: S608 - nothing but places for parameters
#: The newest open call of the turn is the one whose answer is running.
_CREATE = f"""
INSERT INTO conversations_draft (turn_id, call_id, text, thinking, updated_at)
SELECT t.id, c.id, %s, %s, %s FROM conversations_turn t JOIN conversations_apicall c
  ON c.turn_id = t.id AND c.purpose = 'reply'
WHERE t.id = %s AND t.lease_generation = %s AND t.state IN ({_LIVE})
  AND NOT EXISTS (SELECT 1 FROM conversations_apiresult r WHERE r.call_id = c.id)
ORDER BY c.number DESC LIMIT 1 {{lock}}
ON CONFLICT (turn_id) DO UPDATE SET call_id = excluded.call_id, text = excluded.text,
  thinking = excluded.thinking, updated_at = excluded.updated_at"""  # noqa: S608 - places only
#: The first statement for several turns. It skips locked rows, so it never holds one while
#: waiting for another.
_UPDATE_MANY = f"""
WITH shown (turn, generation, text, thinking) AS (VALUES {{rows}}), held AS (
    SELECT t.id FROM conversations_turn t
    JOIN shown ON shown.turn = t.id AND shown.generation = t.lease_generation
    WHERE t.state IN ({_LIVE}) FOR SHARE OF t SKIP LOCKED
)
UPDATE conversations_draft SET text = shown.text, thinking = shown.thinking, updated_at = %s
FROM shown JOIN held ON held.id = shown.turn
WHERE conversations_draft.turn_id = shown.turn AND {_IS_OPEN}
RETURNING conversations_draft.turn_id"""  # noqa: S608 - nothing but places for parameters


class Checkpoint(TypedDict):
    """The text and thinking of a running answer that were shown so far."""

    lease: Lease
    text: str
    thinking: str


def save_drafts(checkpoints: Sequence[Checkpoint]) -> list[Stopped | None]:
    """Save the drafts of several turns; return for each turn why it must not write any more, or
    None.
    """
    if connection.vendor == "sqlite":
        with transaction.atomic():
            return [_try_save_draft(checkpoint) for checkpoint in checkpoints]
    kept = _update_drafts(checkpoints) if len(checkpoints) > 1 else frozenset[int]()
    return [
        None if checkpoint["lease"].turn_id in kept else _try_save_draft(checkpoint)
        for checkpoint in checkpoints
    ]


def _try_save_draft(checkpoint: Checkpoint) -> Stopped | None:
    try:
        save_draft(**checkpoint)
    except Stopped as stopped:
        # Its traceback refers to the list that it is returned in.
        return stopped.with_traceback(None)
    return None


def save_draft(*, lease: Lease, text: str, thinking: str) -> None:
    """Save what was shown of a running answer; without effect if the answer is stored already."""
    kept: dict[str, Any] = {
        "text": make_storable(text),
        "thinking": make_storable(thinking),
        "updated_at": timezone.now(),
    }
    # This runs twice a second for each answer, and nearly always the draft exists.
    if not _update_draft(lease, **kept):
        create_draft(lease=lease, text=text, thinking=thinking)


def create_draft(*, lease: Lease, text: str, thinking: str) -> None:
    """Save the first draft of the open call, in one statement; raises Stopped without the lease.

    Without effect if the answer is stored already.
    """
    at = connection.ops.adapt_datetimefield_value(timezone.now())
    lock = "FOR SHARE OF t" if connection.features.has_select_for_update else ""
    values = [make_storable(text), make_storable(thinking), at, lease.turn_id, lease.generation]
    with connection.cursor() as cursor:
        cursor.execute(_CREATE.format(lock=lock), [*values, *LIVE])
        if cursor.rowcount:
            return
    mine = Turn.objects.filter(pk=lease.turn_id, lease_generation=lease.generation)
    if not mine.filter(state="done").exists():
        with transaction.atomic():
            hold_lease(lease)


def _update_draft(lease: Lease, *, text: str, thinking: str, updated_at: datetime) -> bool:
    """Update the draft in one statement; return whether it exists and the lease is held."""
    lock = "FOR SHARE" if connection.features.has_select_for_update else ""
    at = connection.ops.adapt_datetimefield_value(updated_at)
    with connection.cursor() as cursor:
        cursor.execute(
            _UPDATE_ONE.format(lock=lock),
            [text, thinking, at, lease.turn_id, lease.generation, *LIVE],
        )
        return bool(cursor.rowcount)


def _update_drafts(checkpoints: Sequence[Checkpoint]) -> frozenset[int]:
    """Update in one statement the drafts that are not locked; return their turns."""
    values: list[int | str] = []
    for one in checkpoints:
        lease, words = one["lease"], (make_storable(one["text"]), make_storable(one["thinking"]))
        values += [lease.turn_id, lease.generation, *words]
    rows = ", ".join(["(%s, %s, %s, %s)"] * len(checkpoints))
    with connection.cursor() as cursor:
        cursor.execute(_UPDATE_MANY.format(rows=rows), [*values, *LIVE, timezone.now()])
        return frozenset(turn for (turn,) in cursor.fetchall())


def drop_draft(turn_id: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM conversations_draft WHERE turn_id = %s", [turn_id])


def find_open_draft(turn: Turn) -> Draft | None:
    """Return the draft of the running answer of a turn, if its call is open."""
    return read_decodable(Draft.objects.filter(turn=turn, call__result=None).first)


def store_draft_as_answer(turn: Turn, draft: Draft | None) -> None:
    """Store the draft of an interrupted turn as its answer, and delete the draft."""
    if draft is not None and draft.text.strip():
        content = wire.encode([{"type": "text", "text": draft.text}])
        append_message(
            conversation=lock_conversation(turn.conversation_id),
            turn_id=turn.pk,
            kind="answer",
            content=content,
            estimate=ViewMessage.parse(0, "answer", content).tokens,
        )
    drop_draft(turn.pk)
