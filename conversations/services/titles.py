"""Titles by the model: the one call that asks for it, and the name a person's own outlives."""

from __future__ import annotations

from django.db import transaction

from conversations.models import ApiCall, Conversation
from conversations.ports import Refused, Sending, Sent
from conversations.services import calls
from conversations.services.errands import lock_kept
from conversations.services.leases import Lease
from conversations.services.log import storable
from conversations.services.search import index_title

_TITLE = ApiCall.Purpose.TITLE


@transaction.atomic
def open_title(*, lease: Lease, sending: Sending) -> Sent:
    """Record the call that asks for the title and hold what it can cost; raises Refused."""
    row = lock_kept(lease.conversation_id)
    if ApiCall.objects.filter(conversation=row, purpose=_TITLE).exists():
        raise Refused("titled", "Its title was asked for before.")
    return calls.admit(lease=lease, sending=sending)


@transaction.atomic
def name_conversation(*, conversation_id: int, title: str) -> bool:
    """Give it the model's title in the place of its first words; a person's own name stays."""
    rows = Conversation.objects.select_for_update()
    row = rows.filter(pk=conversation_id, titled_by="words").first()
    if row is None:
        return False
    row.title = storable(title)
    # An update and not a save: `updated_at` says when something was said last.
    Conversation.objects.filter(pk=row.pk).update(title=row.title, titled_by="model")
    index_title(conversation=row)
    return True
