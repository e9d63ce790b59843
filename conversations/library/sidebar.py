"""The list of conversations: starred first, then by day of the last message; archived apart.

A page costs one query, the first one two. The next page continues under the heading where this one
ended.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.dateformat import format as dated
from django.utils.translation import gettext as _

from conversations.library.access import IN_TRASH, list_kept
from conversations.library.conversations import MOST_STARRED
from conversations.log.legal_holds import is_held
from conversations.models import IS_LIVE, Conversation, Turn, User
from conversations.models.cursor import Cursor, format_cursor
from conversations.transcript.shapes import ConversationRow, Sidebar

PAGE = 40


def read_sidebar(
    user: User, current: Conversation | None = None, *, archived: bool = False, after: str = ""
) -> Sidebar:
    """Return a page of the user's conversations: the newest, or those after a cursor."""
    place = Cursor.read(after)
    rows = annotate_rows(list_kept(user).filter(archived_at__isnull=not archived))
    newest = rows.filter(pinned_at=None).order_by("-updated_at", "-id")
    starred: list[Conversation] = []
    if place is not None:
        newest = newest.filter(Q(updated_at__lt=place.at) | Q(updated_at=place.at, id__lt=place.id))
    else:
        starred = list(rows.exclude(pinned_at=None).order_by("-pinned_at", "-id")[:MOST_STARRED])
    page = list(newest[: PAGE + 1])
    more = format_cursor(page[PAGE - 1].updated_at, page[PAGE - 1].pk) if len(page) > PAGE else ""
    now = timezone.now()
    groups: dict[str, list[ConversationRow]] = {}
    if starred:
        groups[_("Starred")] = [build_row(row, current) for row in starred]
    for row in page[:PAGE]:
        groups.setdefault(name_period(row.updated_at, now), []).append(build_row(row, current))
    return Sidebar(
        tuple((name, tuple(found)) for name, found in groups.items()),
        after=more,
        heading=name_period(place.at, now) if place else "",
        archived=archived,
    )


def annotate_rows(rows: QuerySet[Conversation], *more: str) -> QuerySet[Conversation]:
    """Load the columns of a list row, and `more`; annotate whether a turn is running or waiting."""
    live = Turn.objects.filter(IS_LIVE, conversation=OuterRef("pk"))
    waiting = live.filter(state="approval_wait")
    fields = (
        "public_id",
        "title",
        "updated_at",
        "pinned_at",
        "archived_at",
        "deleted_at",
        "erase_at",
    )
    return rows.annotate(live=Exists(live), waiting=Exists(waiting)).only(*fields, *more)


@dataclass(frozen=True, slots=True)
class Counts:
    """The user's conversations: in the list, archived, in the trash."""

    listed: int
    archived: int
    trash: int


def count_conversations(user: User) -> Counts:
    kept = Q(deleted_at=None, erase_at=None)
    found = Conversation.objects.filter(owner=user).aggregate(
        listed=Count("pk", filter=kept & Q(archived_at=None)),
        archived=Count("pk", filter=kept & Q(archived_at__isnull=False)),
        trash=Count("pk", filter=IN_TRASH),
    )
    return Counts(**found)


def load_deleted_conversation(user: User, public_id: UUID) -> Conversation:
    """Return one of the user's conversations in the trash; raises Http404 for any other."""
    return get_object_or_404(Conversation, IN_TRASH, owner=user, public_id=public_id)


def list_trash(user: User) -> tuple[ConversationRow, ...]:
    """Return the conversations in the trash, last deleted first; at most 500."""
    rows = Conversation.objects.filter(IN_TRASH, owner=user)
    rows = annotate_rows(rows, "removed_by_rule").annotate(held=is_held())
    return tuple(
        replace(build_row(row), is_held=row.held, rule=row.removed_by_rule)
        for row in rows.order_by("-deleted_at", "-id")[:500]
    )


def build_row(row: Conversation, current: Conversation | None = None) -> ConversationRow:
    return ConversationRow(
        id=str(row.public_id),
        title=row.title or _("New chat"),
        updated_at=row.updated_at,
        is_live=bool(getattr(row, "live", False)),
        is_waiting=bool(getattr(row, "waiting", False)),
        is_current=current is not None and row.pk == current.pk,
        is_starred=row.pinned_at is not None,
        is_archived=row.archived_at is not None,
        erase_at=row.erase_at,
    )


def name_period(at: datetime, now: datetime) -> str:
    """Return the heading for a time: days if recent, then months."""
    days = (timezone.localdate(now) - timezone.localdate(at)) / timedelta(days=1)
    if days < 1:
        return _("Today")
    if days < 2:
        return _("Yesterday")
    if days < 7:
        return _("Previous 7 days")
    return _("Previous 30 days") if days < 30 else dated(timezone.localtime(at), "F Y")
