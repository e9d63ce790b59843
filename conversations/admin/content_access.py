"""Access to content: one's own, or others' with the permission, which is recorded."""

from __future__ import annotations

from django.http import HttpRequest

from conversations.accounts.reading_log import CONTENT, record_reading
from conversations.accounts.reading_reasons import demand_reason
from conversations.models import Conversation, User


def may_read(request: HttpRequest, conversation: Conversation) -> bool:
    user = request.user
    return user.pk == conversation.owner_id or user.has_perm(CONTENT)


def open_content(request: HttpRequest, conversation: Conversation, what: str) -> bool:
    """Return whether the content may be shown now; reading another person's is recorded.

    Raises ReasonNeeded where the reader has not said why.
    """
    if not may_read(request, conversation):
        return False
    reader = request.user
    if isinstance(reader, User) and reader.pk != conversation.owner_id:
        reason = demand_reason(request.session, conversation.public_id)
        record_reading(reader=reader, conversation=conversation, what=what, reason=reason)
    return True
