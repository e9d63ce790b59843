"""Ways into the inspector: from an answer to its call, from a change to its row."""

from __future__ import annotations

from conversations.models import ApiCall, Conversation


def call_of_answer(conversation: Conversation, seq: int) -> int | None:
    """Give the number of the call that gave an answer."""
    calls = ApiCall.objects.filter(conversation=conversation)
    key = calls.filter(result__answer__seq=seq).values_list("pk", flat=True).first()
    return None if key is None else calls.filter(pk__lte=key).count()


def admin_change(conversation: Conversation, seq: int) -> int | None:
    """Give the key of a transformation's row."""
    rows = conversation.transformations.filter(seq=seq)
    return rows.values_list("pk", flat=True).first()
