"""The hash chain, walked in the order of its links: the first row that is changed, gone or moved.

Each row is judged against the chain value recorded before it, so one bad row does not hide the
next. Rows that were written while the walk went on are not yet part of it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from conversations.models import (
    ApiCall,
    ApiResult,
    Approval,
    Chained,
    Conversation,
    Decision,
    Message,
    Pin,
    Transformation,
)
from conversations.services.audit.report import Problem
from conversations.services.audit.rows import DAMAGE, chunks, read_rows, words
from conversations.services.chain import link_digest

_OWNER: dict[type[Chained], str] = {
    Message: "conversation",
    Transformation: "conversation",
    ApiCall: "conversation",
    ApiResult: "call__conversation",
    Pin: "conversation",
    Approval: "conversation",
    Decision: "conversation",
}


@dataclass(frozen=True, slots=True)
class Place:
    #: A number, unless the row is damaged.
    link: Any
    kind: type[Chained]
    key: Any


@dataclass(frozen=True, slots=True)
class Misfit:
    """A row that does not fit, or the link where none stands; `before` is the chain up to it."""

    link: int
    table: str
    id: str
    what: str
    row: Chained | None = None
    before: str = ""


def check_links(conversation: Conversation) -> Iterator[Problem]:
    """Give the first row that breaks the conversation's chain, if any."""
    misfits = list(_misfits(conversation))
    if not misfits:
        return
    first = misfits[0]
    what = _swapped(first, misfits) or first.what
    if len(misfits) > 1:
        what += f" (and {len(misfits) - 1} more that do not fit)"
    yield Problem(first.table, first.id, what, str(conversation.public_id))


def _misfits(conversation: Conversation) -> Iterator[Misfit]:
    places: list[Place] = []
    for place in _places(conversation):
        if isinstance(place.link, int):
            places.append(place)
        else:
            yield Misfit(0, _table(place.kind), str(place.key), "changed: its link is no number")
    places.sort(key=lambda place: place.link)
    end = conversation.links
    yield from _walk([place for place in places if place.link <= end], conversation)
    latest = Conversation.objects.values_list("links", flat=True).get(pk=conversation.pk)
    for place in places:
        if place.link > max(end, latest):
            what = f"stands at link {place.link} behind the end of the chain"
            yield Misfit(place.link, _table(place.kind), str(place.key), what)


def _places(conversation: Conversation) -> Iterator[Place]:
    for kind, owner in _OWNER.items():
        rows = kind._base_manager.filter(**{owner: conversation.pk}).order_by()
        for link, key in rows.values_list("link", "pk"):
            yield Place(link, kind, key)


def _walk(places: list[Place], conversation: Conversation) -> Iterator[Misfit]:
    before: str | None = ""
    following = 1
    for place, row in _read(places):
        table, key, link = _table(place.kind), str(place.key), place.link
        if link > following:
            yield Misfit(following, "link", str(following), _gone(following, link - 1))
            before = None
        elif link < following:
            yield Misfit(link, table, key, f"stands at link {link} where another row stands")
            continue
        following = link + 1
        if not isinstance(row, Chained):
            yield Misfit(link, table, key, f"cannot be read: {row}")
            before = None
            continue
        if before is not None and not _fits(row, before):
            what = f"changed: it does not fit link {link} of the chain"
            yield Misfit(link, table, key, what, row, before)
        before = row.chain
    if following <= conversation.links:
        yield Misfit(following, "link", str(following), _gone(following, conversation.links))
    elif before is not None and before != conversation.chain:
        what = "changed: the end of its chain is not that of its last row"
        yield Misfit(following, "conversation", str(conversation.pk), what)


def _read(places: list[Place]) -> Iterator[tuple[Place, Chained | str]]:
    for some in chunks(places):
        found: dict[type[Chained], dict[Any, Any]] = {
            kind: read_rows(kind._base_manager.all(), [p.key for p in some if p.kind is kind])
            for kind in {place.kind for place in some}
        }
        for place in some:
            row = found[place.kind].get(place.key, "it is gone")
            yield place, words(row) if isinstance(row, Exception) else row


def _fits(row: Chained, before: str, link: int | None = None, chain: str | None = None) -> bool:
    """Say whether the row, standing at `link`, gives that chain value after `before`."""
    if link is not None:
        row = copy.copy(row)
        row.link = link
    try:
        return link_digest(before, row) == (row.chain if chain is None else chain)
    except DAMAGE:
        return False


def _swapped(first: Misfit, misfits: list[Misfit]) -> str:
    """Say which of the rows that do not fit belongs in the first one's place."""
    if first.row is None:
        return ""
    for other in misfits[1:50]:
        if other.row is None:
            continue
        chains = (first.row.chain, other.row.chain)
        if any(_fits(other.row, first.before, first.link, chain) for chain in chains):
            return f"swapped: {other.table} {other.id} belongs at its link {first.link}"
    return ""


def _gone(first: int, last: int) -> str:
    return "missing: no row stands here" + (f" nor up to link {last}" if last > first else "")


def _table(kind: type[Chained]) -> str:
    return str(kind._meta.model_name)
