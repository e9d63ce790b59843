"""The draft of an answer on its way, so that a crash keeps what was shown.

It lives exactly as long as its call is open: a checkpoint that comes later is dropped, and closing
the call removes it. Otherwise the draft of a stored answer would be kept a second time.
"""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from conversations.context import wire
from conversations.context.view import Message as ViewMessage
from conversations.models import ApiCall, Draft, Turn
from conversations.services.leases import Lease, hold
from conversations.services.log import append_message, storable


@transaction.atomic
def save_draft(*, lease: Lease, text: str, thinking: str) -> None:
    """Keep what was shown of the answer on its way; one that was stored meanwhile needs none."""
    hold(lease)
    kept = {
        "text": storable(text),
        "thinking": storable(thinking),
        "updated_at": timezone.now(),
    }
    # Nearly always there is one of the call that is open: that is a single statement.
    if Draft.objects.filter(turn_id=lease.turn_id, call__result=None).update(**kept):
        return
    calls = ApiCall.objects.filter(turn_id=lease.turn_id, purpose="reply", result=None)
    call = calls.order_by("-number").values_list("pk", flat=True).first()
    if call is not None:
        Draft.objects.update_or_create(turn_id=lease.turn_id, defaults=kept | {"call_id": call})


def drop_draft(turn_id: int) -> None:
    Draft.objects.filter(turn_id=turn_id).delete()


def keep_draft(turn: Turn) -> None:
    """Make the draft of a turn that was cut off the answer it was going to be."""
    draft = Draft.objects.filter(turn=turn).first()
    if draft is not None and draft.text.strip():
        content = wire.encode([{"type": "text", "text": draft.text}])
        append_message(
            conversation_id=turn.conversation_id,
            turn_id=turn.pk,
            kind="answer",
            content=content,
            estimate=ViewMessage.parse(0, "answer", content).tokens,
        )
    drop_draft(turn.pk)
