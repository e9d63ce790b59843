"""Full-text search in the user's own messages and titles, newest first, with marked excerpts.

A page costs one query. Pages are addressed by cursor and not by number, so new messages do not
shift them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q
from django.utils.translation import gettext as _

from conversations.log import search_terms
from conversations.models import SearchText, User
from conversations.models.cursor import Cursor, format_cursor
from conversations.rendering.plain import replace_controls

PAGE = 20
#: Characters of an excerpt; characters of it before the first hit.
EXCERPT, BEFORE = 280, 70


@dataclass(frozen=True, slots=True)
class ExcerptPiece:
    """A run of an excerpt's text."""

    text: str
    is_hit: bool = False


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A message or title that matches: `seq` is 0 for a title."""

    conversation: str
    title: tuple[ExcerptPiece, ...]
    kind: str
    seq: int
    excerpt: tuple[ExcerptPiece, ...]
    at: datetime
    is_archived: bool
    #: The name of the conversation's folder; "": it is in none.
    folder: str = ""


@dataclass(frozen=True, slots=True)
class SearchPage:
    """`after` is the cursor of the next page; `is_asked` is false for a query without words."""

    rows: tuple[SearchResult, ...] = ()
    after: str = ""
    is_asked: bool = False


def search_messages(
    user: User, question: str, *, archived: bool = False, after: str = ""
) -> SearchPage:
    """Search the user's conversations, with archived ones if requested."""
    wanted = search_terms.parse_query(question)
    if not wanted:
        return SearchPage()
    phrases = [(each.terms, each.is_prefix) for each in wanted]
    rows = (
        SearchText.objects.filter(owner=user, words__matches=phrases)
        .filter(conversation__owner=user, conversation__deleted_at=None)
        .filter(conversation__erase_at=None)
        .select_related("conversation__folder")
        .only(
            "seq", "kind", "text", "at",
            "conversation__public_id", "conversation__title", "conversation__archived_at",
            "conversation__folder__name",
        )
        .order_by("-at", "-id")
    )  # fmt: skip
    if not archived:
        rows = rows.filter(conversation__archived_at=None)
    if place := Cursor.read(after):
        rows = rows.filter(Q(at__lt=place.at) | Q(at=place.at, id__lt=place.id))
    page = list(rows[: PAGE + 1])
    last = format_cursor(page[PAGE - 1].at, page[PAGE - 1].pk) if len(page) > PAGE else ""
    return SearchPage(tuple(_build_result(row, wanted) for row in page[:PAGE]), last, is_asked=True)


def _build_result(row: SearchText, wanted: tuple[search_terms.Phrase, ...]) -> SearchResult:
    title = row.conversation.title or _("New chat")
    return SearchResult(
        conversation=str(row.conversation.public_id),
        title=tuple(cut_excerpt(title, wanted)),
        kind=row.kind,
        seq=row.seq,
        excerpt=() if row.kind == "title" else tuple(cut_excerpt(row.text, wanted)),
        at=row.at,
        is_archived=row.conversation.archived_at is not None,
        folder=folder.name if (folder := row.conversation.folder) else "",
    )


def cut_excerpt(text: str, wanted: tuple[search_terms.Phrase, ...]) -> Iterator[ExcerptPiece]:
    """Yield an excerpt around the first hit, split at the hits; plain text, to be escaped."""
    places = search_terms.find_hits(text, wanted)
    hit = next(places, None)
    first = hit[0] if hit else 0
    start = 0 if first <= BEFORE * 2 else text.rfind(" ", 0, first - BEFORE) + 1
    start = max(start, first - 2 * BEFORE)
    end = min(len(text), start + EXCERPT)
    if end < len(text):
        end = max(text.rfind(" ", 0, end), end - BEFORE)
    at = start
    if start:
        yield ExcerptPiece("… ")
    while hit and hit[0] < end:
        begin, stop = hit
        if begin > at:
            yield ExcerptPiece(_flatten(text[at:begin]))
        yield ExcerptPiece(_flatten(text[begin : min(stop, end)]), is_hit=True)
        at = min(stop, end)
        hit = next(places, None)
    if at < end:
        yield ExcerptPiece(_flatten(text[at:end]))
    if end < len(text):
        yield ExcerptPiece(" …")


def _flatten(text: str) -> str:
    """Put a piece on one line, keeping its outer spaces."""
    return " ".join(replace_controls(text).replace("\n", " ").split(" "))
