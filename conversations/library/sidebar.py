"""The list of conversations: starred, in folders, then by day of the last message; archived apart.

Each conversation stands in one place of it. A page costs one query; the first one three, and a
fourth where folders are open, however many there are. The next page continues under the heading
where this one ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Window
from django.db.models.functions import RowNumber
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.dateformat import format as dated
from django.utils.translation import gettext as _

from conversations.library.access import IN_TRASH, list_kept
from conversations.library.folders import list_folders
from conversations.log.legal_holds import is_held
from conversations.models import IS_LIVE, Conversation, Folder, Turn, User
from conversations.models.cursor import Cursor, format_cursor
from conversations.transcript.shapes import ConversationRow, FolderRow, Sidebar

PAGE = 40
#: Folders that stay open, those opened last; the conversations that an open one shows, besides that
#: of the page. Its own page has all.
MOST_OPEN, IN_FOLDER = 10, 10


def read_sidebar(
    user: User, current: Conversation | None = None, *, archived: bool = False, after: str = ""
) -> Sidebar:
    """Return a page of the user's conversations: the newest, or those after a cursor."""
    place, now = Cursor.read(after), timezone.now()
    rows = annotate_rows(list_kept(user).filter(archived_at__isnull=not archived))
    unfiled = rows if archived else rows.filter(pinned_at=None, folder=None)
    page, more = _read_page(unfiled, place)
    starred: list[Conversation] = []
    if place is None and not archived:
        # All of them: these stand nowhere else, and some people have more than may be added to.
        starred = list(rows.exclude(pinned_at=None).order_by("-pinned_at", "-id"))
    groups: dict[str, list[ConversationRow]] = {}
    for row in page:
        groups.setdefault(name_period(row.updated_at, now), []).append(build_row(row, current))
    return Sidebar(
        tuple((name, tuple(found)) for name, found in groups.items()),
        after=more,
        heading=name_period(place.at, now) if place else "",
        archived=archived,
        starred=tuple(build_row(row, current) for row in starred),
        folders=_read_folders(user, current) if place is None and not archived else (),
    )


def read_folder(
    user: User, folder: Folder, current: Conversation | None = None, *, after: str = ""
) -> Sidebar:
    """Return a page of a folder's conversations, newest first; those that are starred, too."""
    rows = annotate_rows(list_kept(user).filter(archived_at=None, folder=folder))
    page, more = _read_page(rows, Cursor.read(after))
    found = tuple(build_row(row, current) for row in page)
    groups = (("", found),) if found else ()
    return Sidebar(groups, after=more, folder=str(folder.public_id))


def read_folder_row(user: User, folder: Folder, current: Conversation | None = None) -> FolderRow:
    """Return a folder as the list shows it."""
    opened = [folder] if folder.opened_at else []
    return _build_folder(folder, _read_opened(user, opened, current), current)


def _read_page(
    rows: QuerySet[Conversation], place: Cursor | None
) -> tuple[list[Conversation], str]:
    """Return the newest rows, or those after a place, and the cursor of the next page."""
    newest = rows.order_by("-updated_at", "-id")
    if place is not None:
        newest = newest.filter(Q(updated_at__lt=place.at) | Q(updated_at=place.at, id__lt=place.id))
    page = list(newest[: PAGE + 1])
    more = format_cursor(page[PAGE - 1].updated_at, page[PAGE - 1].pk) if len(page) > PAGE else ""
    return page[:PAGE], more


def _read_folders(user: User, current: Conversation | None) -> tuple[FolderRow, ...]:
    folders = list_folders(user)
    times = [(row.opened_at, row) for row in folders if row.opened_at]
    times.sort(key=lambda pair: pair[0], reverse=True)
    rows = _read_opened(user, [row for _, row in times[:MOST_OPEN]], current)
    return tuple(_build_folder(row, rows, current) for row in folders)


def _read_opened(
    user: User, folders: Sequence[Folder], current: Conversation | None
) -> dict[int, list[Conversation]]:
    """Return the newest conversations of each folder, and the current one where it is in one.

    There is one more than are shown, if there are.
    """
    found: dict[int, list[Conversation]] = {folder.pk: [] for folder in folders}
    if not found:
        return found
    listed = list_kept(user).filter(folder__in=found, archived_at=None, pinned_at=None)
    newest = [F("updated_at").desc(), F("id").desc()]
    place = Window(RowNumber(), partition_by=F("folder_id"), order_by=newest)
    # Whether a turn runs is asked of the rows that are shown, not of all that are counted.
    shown = Q(place__lte=IN_FOLDER + 2)
    if current is not None:
        shown |= Q(pk=current.pk)
    first = listed.annotate(place=place).filter(shown).values("pk")
    rows = annotate_rows(Conversation.objects.filter(pk__in=first), "folder")
    for row in rows.order_by("-updated_at", "-id"):
        found[row.folder_id or 0].append(row)
    return found


def _build_folder(
    folder: Folder, opened: Mapping[int, list[Conversation]], current: Conversation | None
) -> FolderRow:
    rows = opened.get(folder.pk, [])
    shown = rows[:IN_FOLDER]
    shown += [row for row in rows[IN_FOLDER:] if current is not None and row.pk == current.pk]
    return FolderRow(
        id=str(folder.public_id),
        name=folder.name,
        is_open=folder.pk in opened,
        is_current=current is not None and current.folder_id == folder.pk,
        rows=tuple(build_row(row, current) for row in shown),
        has_more=len(rows) > len(shown),
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
