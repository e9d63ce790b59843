"""The draft of an answer on its way, so that a crash keeps what was shown.

It lives exactly as long as its call is open: a checkpoint that comes later is dropped, and closing
the call removes it. Otherwise the draft of a stored answer would be kept a second time.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from datetime import datetime
from typing import Any, TypedDict

from django.db import connection, transaction
from django.utils import timezone

from conversations.context import wire
from conversations.context.view import Message as ViewMessage
from conversations.models import LIVE, ApiCall, Draft, Turn
from conversations.services.chain import locked
from conversations.services.leases import Lease, hold
from conversations.services.log import append_message, storable
from conversations.switch import Stopped

#: The lock holds off whoever would take the turn over meanwhile.
_WENT_ON = f"""
UPDATE conversations_draft SET text = %s, thinking = %s, updated_at = %s
WHERE turn_id IN (
    SELECT id FROM conversations_turn
    WHERE id = %s AND lease_generation = %s AND state IN ({", ".join(["%s"] * len(LIVE))}) {{lock}}
) AND NOT EXISTS (
    SELECT 1 FROM conversations_apiresult r WHERE r.call_id = conversations_draft.call_id
)"""  # noqa: S608 - nothing but places for parameters


class Checkpoint(TypedDict):
    """What was shown so far of the answer of a lease."""

    lease: Lease
    text: str
    thinking: str


def save_drafts(checkpoints: Sequence[Checkpoint]) -> list[Stopped | None]:
    """Keep those of several turns; gives for each why its turn may write no more, if it may not."""
    # On PostgreSQL each by itself: so none holds the rows of its turn while others are written.
    is_one = connection.vendor == "sqlite" and len(checkpoints) > 1
    with transaction.atomic() if is_one else nullcontext():
        return [_saved(checkpoint) for checkpoint in checkpoints]


def _saved(checkpoint: Checkpoint) -> Stopped | None:
    try:
        save_draft(**checkpoint)
    except Stopped as stopped:
        return stopped
    return None


def save_draft(*, lease: Lease, text: str, thinking: str) -> None:
    """Keep what was shown of the answer on its way; one that was stored meanwhile needs none."""
    kept: dict[str, Any] = {
        "text": storable(text),
        "thinking": storable(thinking),
        "updated_at": timezone.now(),
    }
    # Twice a second for each answer, and nearly always there is a draft of the call that is open.
    if not _went_on(lease, **kept):
        _begin_draft(lease, **kept)


def _went_on(lease: Lease, *, text: str, thinking: str, updated_at: datetime) -> bool:
    """Replace the draft in one statement, if there is one and the lease stands."""
    lock = "FOR SHARE" if connection.features.has_select_for_update else ""
    at = connection.ops.adapt_datetimefield_value(updated_at)
    with connection.cursor() as cursor:
        cursor.execute(
            _WENT_ON.format(lock=lock),
            [text, thinking, at, lease.turn_id, lease.generation, *LIVE],
        )
        return bool(cursor.rowcount)


@transaction.atomic
def _begin_draft(lease: Lease, **kept: Any) -> None:
    hold(lease)
    calls = ApiCall.objects.filter(turn_id=lease.turn_id, purpose="reply", result=None)
    call = calls.order_by("-number").values_list("pk", flat=True).first()
    if call is not None:
        draft = Draft(turn_id=lease.turn_id, call_id=call, **kept)
        # One statement, where to look first takes five.
        Draft.objects.bulk_create(
            [draft],
            update_conflicts=True,
            unique_fields=["turn"],
            update_fields=["call", *kept],
        )


def drop_draft(turn_id: int) -> None:
    Draft.objects.filter(turn_id=turn_id).delete()


def keep_draft(turn: Turn) -> None:
    """Make the draft of a turn that was cut off the answer it was going to be."""
    draft = Draft.objects.filter(turn=turn).first()
    if draft is not None and draft.text.strip():
        content = wire.encode([{"type": "text", "text": draft.text}])
        append_message(
            conversation=locked(turn.conversation_id),
            turn_id=turn.pk,
            kind="answer",
            content=content,
            estimate=ViewMessage.parse(0, "answer", content).tokens,
        )
    drop_draft(turn.pk)
