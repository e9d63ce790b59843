"""What a person says of tools for one conversation; it counts from the next turn on."""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction

from conversations.models import Conversation, ToolSwitch, WebSearch
from conversations.services.chain import locked


@transaction.atomic
def switch_tools(*, conversation_id: int, on: Collection[str], off: Collection[str]) -> None:
    """Switch these tools on and those off; what is in neither stays as it is.

    A turn that is on its way keeps the tools it began with.
    """
    conversation = locked(conversation_id)
    rows = ToolSwitch.objects.filter(conversation=conversation)
    rows.filter(tool__in=on).delete()
    known = set(rows.values_list("tool", flat=True))
    ToolSwitch.objects.bulk_create(
        ToolSwitch(conversation=conversation, tool=name) for name in sorted({*off} - known)
    )


@transaction.atomic
def choose_web_search(*, conversation_id: int, choice: str) -> None:
    """Take over what the person says of searching the web here; each call's envelope records it."""
    conversation = locked(conversation_id)
    chosen = WebSearch(choice)
    Conversation.objects.filter(pk=conversation.pk).update(web_search=chosen)
