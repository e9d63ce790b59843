"""What a search finds: the user's own messages and titles, newest first, with marked excerpts.

A page costs one query. Pages go by place and not by number: what is said meanwhile moves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q
from django.utils.translation import gettext as _

from conversations.log import search_terms
from conversations.models import SearchText, User
from conversations.models.cursor import Place, place_of
from conversations.rendering.plain import replace_controls

PAGE = 20
#: Characters of an excerpt, and of it before the first hit.
EXCERPT, BEFORE = 280, 70


@dataclass(frozen=True, slots=True)
class ExcerptPiece:
    """A run of an excerpt."""

    text: str
    is_hit: bool = False


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One message or title: `seq` is 0 for a title."""

    conversation: str
    title: tuple[ExcerptPiece, ...]
    kind: str
    seq: int
    excerpt: tuple[ExcerptPiece, ...]
    at: datetime
    is_archived: bool


@dataclass(frozen=True, slots=True)
class SearchPage:
    """`after` is the place of the last row when there are more; `is_asked`: there was a word."""

    rows: tuple[SearchResult, ...] = ()
    after: str = ""
    is_asked: bool = False


def search_messages(
    user: User, question: str, *, archived: bool = False, after: str = ""
) -> SearchPage:
    """Search the user's conversations, the archived ones too if they are wanted."""
    wanted = search_terms.asked(question)
    if not wanted:
        return SearchPage()
    phrases = [(each.terms, each.is_prefix) for each in wanted]
    rows = (
        SearchText.objects.filter(owner=user, words__matches=phrases)
        .filter(conversation__owner=user, conversation__deleted_at=None)
        .select_related("conversation")
        .only(
            "seq", "kind", "text", "at",
            "conversation__public_id", "conversation__title", "conversation__archived_at",
        )
        .order_by("-at", "-id")
    )  # fmt: skip
    if not archived:
        rows = rows.filter(conversation__archived_at=None)
    if place := Place.read(after):
        rows = rows.filter(Q(at__lt=place.at) | Q(at=place.at, id__lt=place.id))
    page = list(rows[: PAGE + 1])
    last = place_of(page[PAGE - 1].at, page[PAGE - 1].pk) if len(page) > PAGE else ""
    return SearchPage(tuple(_build_result(row, wanted) for row in page[:PAGE]), last, is_asked=True)


def _build_result(row: SearchText, wanted: tuple[search_terms.Asked, ...]) -> SearchResult:
    title = row.conversation.title or _("New chat")
    return SearchResult(
        conversation=str(row.conversation.public_id),
        title=tuple(cut_excerpt(title, wanted)),
        kind=row.kind,
        seq=row.seq,
        excerpt=() if row.kind == "title" else tuple(cut_excerpt(row.text, wanted)),
        at=row.at,
        is_archived=row.conversation.archived_at is not None,
    )


def cut_excerpt(text: str, wanted: tuple[search_terms.Asked, ...]) -> Iterator[ExcerptPiece]:
    """Cut an excerpt around the first hit, the hits apart; plain text, for a template to escape."""
    places = search_terms.hits(text, wanted)
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
    """Show a piece on one line, its outer spaces kept."""
    return " ".join(replace_controls(text).replace("\n", " ").split(" "))
