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
    reader, opened = request.user, (conversation.pk, what)
    if isinstance(reader, User) and reader.pk != conversation.owner_id:
        reason = demand_reason(request.session, conversation.public_id)
        # A page is made again if a text in it cannot be decoded (agentweb/site/admin_site.py).
        recorded: set[tuple[int, str]] = vars(request).setdefault("recorded_readings", set())
        if opened not in recorded:
            record_reading(reader=reader, conversation=conversation, what=what, reason=reason)
            recorded.add(opened)
    return True
