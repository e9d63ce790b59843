"""The draft of a running answer, so that a crash keeps what was shown.

It exists as long as its call is open: a later checkpoint is dropped, and closing the call deletes
the draft. Otherwise the draft of a stored answer would be stored as a second answer. One that was
being saved while its call was closed may stay on PostgreSQL; it is neither stored nor shown.
"""

from __future__ import annotations

from collections.abc import Sequence
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
#: The newest open call of the turn is the one whose answer is running. The lock prevents a takeover
#: of the turn during the statement.
_SAVE = f"""
INSERT INTO conversations_draft (turn_id, call_id, text, thinking, updated_at)
SELECT t.id, c.id, %s, %s, %s FROM conversations_turn t JOIN conversations_apicall c
  ON c.turn_id = t.id AND c.purpose = 'reply'
WHERE t.id = %s AND t.lease_generation = %s AND t.state IN ({_LIVE})
  AND NOT EXISTS (SELECT 1 FROM conversations_apiresult r WHERE r.call_id = c.id)
ORDER BY c.number DESC LIMIT 1 {{lock}}
ON CONFLICT (turn_id) DO UPDATE SET call_id = excluded.call_id, text = excluded.text,
  thinking = excluded.thinking, updated_at = excluded.updated_at"""  # noqa: S608 - places only
#: Of several turns the drafts that exist already, as nearly always. It skips locked rows, so it
#: never holds one while waiting for another. The columns of VALUES are named by both databases.
_UPDATE = f"""
UPDATE conversations_draft SET text = held.text, thinking = held.thinking, updated_at = %s
FROM (
    SELECT t.id, shown.column3 AS text, shown.column4 AS thinking
    FROM (VALUES {{rows}}) AS shown JOIN conversations_turn t
      ON t.id = shown.column1 AND t.lease_generation = shown.column2
    WHERE t.state IN ({_LIVE}) {{lock}}
) AS held
WHERE conversations_draft.turn_id = held.id AND NOT EXISTS (
    SELECT 1 FROM conversations_apiresult r WHERE r.call_id = conversations_draft.call_id
) RETURNING turn_id"""  # noqa: S608 - nothing but places for parameters


class Checkpoint(TypedDict):
    """The text and thinking of a running answer that were shown so far."""

    lease: Lease
    text: str
    thinking: str


def save_drafts(checkpoints: Sequence[Checkpoint]) -> list[Stopped | None]:
    """Save the drafts of several turns; return for each turn why it must not write any more, or
    None.
    """
    kept = _update_drafts(checkpoints)
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
    """Save what was shown of a running answer, in one statement; raises Stopped without the lease.

    Without effect if the answer is stored already.
    """
    values = [make_storable(text), make_storable(thinking), _now(), lease.turn_id, lease.generation]
    with connection.cursor() as cursor:
        cursor.execute(_SAVE.format(lock=_lock("FOR SHARE OF t")), [*values, *LIVE])
        if cursor.rowcount:
            return
    mine = Turn.objects.filter(pk=lease.turn_id, lease_generation=lease.generation)
    if not mine.filter(state="done").exists():
        with transaction.atomic():
            hold_lease(lease)


def _update_drafts(checkpoints: Sequence[Checkpoint]) -> frozenset[int]:
    """Update in one statement the drafts that exist and are not locked; return their turns."""
    values: list[Any] = [_now()]
    for one in checkpoints:
        lease, words = one["lease"], (make_storable(one["text"]), make_storable(one["thinking"]))
        values += [lease.turn_id, lease.generation, *words]
    rows = ", ".join(["(%s, %s, %s, %s)"] * len(checkpoints))
    statement = _UPDATE.format(rows=rows, lock=_lock("FOR SHARE OF t SKIP LOCKED"))
    # In a transaction, because SQLite ends the statement only with the last row that is fetched.
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, [*values, *LIVE])
        return frozenset(turn for (turn,) in cursor.fetchall())


def _lock(clause: str) -> str:
    """Return a clause that locks rows, where the database has such locks."""
    return clause if connection.features.has_select_for_update else ""


def _now() -> Any:
    return connection.ops.adapt_datetimefield_value(timezone.now())


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
