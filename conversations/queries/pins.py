"""What is pinned in a conversation; one query, whatever its length."""

from __future__ import annotations

from datetime import datetime

from conversations import models
from conversations.context.pinned import Pin
from conversations.models import Conversation


def pins(conversation: Conversation, until: datetime | None = None) -> frozenset[Pin]:
    """Give the targets whose latest row, or latest until then, says that they are pinned."""
    return pins_of(conversation.pk, until)


def pins_of(conversation_id: int, until: datetime | None = None) -> frozenset[Pin]:
    """Give the same of a conversation that was not read."""
    kept = models.Pin.objects.filter(conversation_id=conversation_id)
    if until is not None:
        kept = kept.filter(created_at__lte=until)
    rows = kept.order_by("link").values_list("tool_use_id", "seq", "is_pinned")
    latest: dict[Pin, bool] = {}
    for tool_use_id, seq, is_pinned in rows:
        latest[tool_use_id if seq is None else seq] = is_pinned
    return frozenset(target for target, is_pinned in latest.items() if is_pinned)
