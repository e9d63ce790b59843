"""The only door to a conversation: by its owner, by staff for review, or by a turn's own id."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _

from conversations.models import LIVE, ApiModel, Conversation, Turn, User
from conversations.queries.shapes import ConversationRow, Sidebar


def conversation_for(user: User, public_id: UUID | str) -> Conversation:
    """Give the user's own conversation; anyone else's is not found."""
    return get_object_or_404(owned(user), public_id=public_id)


def owned(user: User) -> QuerySet[Conversation]:
    return Conversation.objects.filter(owner=user)


def conversation_by_id(conversation_id: int) -> Conversation:
    """Give the conversation of a turn that is already authorised."""
    return Conversation.objects.get(pk=conversation_id)


def turn_for(user: User, public_id: UUID | str, number: int) -> Turn:
    rows = Turn.objects.select_related("conversation").filter(conversation__owner=user)
    return get_object_or_404(rows, conversation__public_id=public_id, number=number)


def live_turn(conversation: Conversation) -> Turn | None:
    return conversation.turns.filter(state__in=LIVE).first()


def newest(user: User) -> Conversation | None:
    return owned(user).filter(archived_at=None).order_by("-updated_at").first()


def enabled_models() -> list[str]:
    return list(ApiModel.objects.filter(is_enabled=True).values_list("pk", flat=True))


def sidebar(user: User, current: Conversation | None = None, limit: int = 100) -> Sidebar:
    """Give the newest conversations under date headings; one query."""
    live = Turn.objects.filter(conversation=OuterRef("pk"), state__in=LIVE)
    rows = (
        owned(user)
        .filter(archived_at=None)
        .annotate(live=Exists(live))
        .only("public_id", "title", "updated_at")
        .order_by("-updated_at")[:limit]
    )
    groups: dict[str, list[ConversationRow]] = {}
    now = timezone.now()
    for row in rows:
        shown = ConversationRow(
            str(row.public_id),
            row.title or _("New chat"),
            row.updated_at,
            bool(getattr(row, "live", False)),
            current is not None and row.pk == current.pk,
        )
        groups.setdefault(_heading(row.updated_at, now), []).append(shown)
    return Sidebar(tuple((heading, tuple(found)) for heading, found in groups.items()))


def _heading(at: datetime, now: datetime) -> str:
    days = (now.date() - at.date()) / timedelta(days=1)
    if days < 1:
        return _("Today")
    if days < 2:
        return _("Yesterday")
    if days < 7:
        return _("Previous 7 days")
    return _("Previous 30 days") if days < 30 else _("Older")
