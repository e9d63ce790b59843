"""Walk a hash chain in the order of its links and report rows that were changed, removed or moved.

Each row is compared with the chain value recorded before it, so one bad row does not hide the next.
Rows written during the walk are left out.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from conversations.log.chain import OWNED, SITE, End, compute_link
from conversations.log.findings import DAMAGE, Problem, describe_error, read_rows, split_chunks
from conversations.models import Chained, Conversation, SiteChain

#: The anchored values of a chain by link, each with a text that names the anchor.
Pinned = Mapping[int, tuple[str, str]]
_NONE: Pinned = {}


@dataclass(frozen=True, slots=True)
class RowPosition:
    #: A number, unless the row is damaged.
    link: Any
    kind: type[Chained]
    key: Any


@dataclass(frozen=True, slots=True)
class Misfit:
    """A row that does not fit, or a link without a row; `before` is the chain value before it."""

    link: int
    table: str
    id: str
    what: str
    row: Chained | None = None
    before: str = ""


def check_links(end: End, pinned: Pinned = _NONE) -> Iterator[Problem]:
    """Yield the first row that breaks the chain or differs from its anchor, with the number of
    other such rows.
    """
    misfits = list(_find_misfits(end, pinned))
    if not misfits:
        return
    first = misfits[0]
    what = _describe_swap(first, misfits) or first.what
    if len(misfits) > 1:
        what += f" (and {len(misfits) - 1} more that do not fit)"
    place = str(end.public_id) if isinstance(end, Conversation) else ""
    yield Problem(first.table, first.id, what, place)


def _find_misfits(end: End, pinned: Pinned) -> Iterator[Misfit]:
    places: list[RowPosition] = []
    for place in _list_positions(end):
        if isinstance(place.link, int):
            places.append(place)
        else:
            yield Misfit(
                0, _name_table(place.kind), str(place.key), "changed: its link is no number"
            )
    # Of two rows at one link the older one is the original.
    places.sort(key=lambda place: (place.link, place.key))
    yield from _walk_links([place for place in places if place.link <= end.links], end, pinned)
    latest = type(end)._default_manager.values_list("links", flat=True).filter(pk=end.pk).first()
    for place in places:
        if place.link > max(end.links, latest or 0):
            what = f"stands at link {place.link} behind the end of the chain"
            yield Misfit(place.link, _name_table(place.kind), str(place.key), what)


def _list_positions(end: End) -> Iterator[RowPosition]:
    for kind, rows in _list_tables(end):
        for link, key in rows.order_by().values_list("link", "pk"):
            yield RowPosition(link, kind, key)


def _list_tables(end: End) -> Iterator[tuple[type[Chained], QuerySet[Any]]]:
    if isinstance(end, SiteChain):
        for kind, where in SITE.items():
            yield kind, kind._base_manager.filter(**where)
    else:
        for kind, owner in OWNED.items():
            yield kind, kind._base_manager.filter(**{owner: end.pk})


def _walk_links(places: list[RowPosition], end: End, pinned: Pinned) -> Iterator[Misfit]:
    before: str | None = ""
    following = 1
    for place, row in _read_rows(places):
        table, key, link = _name_table(place.kind), str(place.key), place.link
        if link > following:
            yield Misfit(following, "link", str(following), _describe_gap(following, link - 1))
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
        elif link in pinned and pinned[link][0] != row.chain:
            what = f"replaced: {pinned[link][1]} has another row at link {link}"
            yield Misfit(link, table, key, what)
        before = row.chain
    if following <= end.links:
        yield Misfit(following, "link", str(following), _describe_gap(following, end.links))
    elif before is not None and before != end.chain:
        what = "changed: the end of its chain is not that of its last row"
        yield Misfit(following, str(end._meta.model_name), str(end.pk), what)
    last = max(pinned, default=0)
    if last > end.links:
        what = f"{_describe_gap(end.links + 1, last)}, and {pinned[last][1]} has {last} links"
        yield Misfit(end.links + 1, "link", str(end.links + 1), what)


def _read_rows(places: list[RowPosition]) -> Iterator[tuple[RowPosition, Chained | str]]:
    for some in split_chunks(places):
        found: dict[type[Chained], dict[Any, Any]] = {
            kind: read_rows(kind._base_manager.all(), [p.key for p in some if p.kind is kind])
            for kind in {place.kind for place in some}
        }
        for place in some:
            row = found[place.kind].get(place.key, "it is gone")
            yield place, describe_error(row) if isinstance(row, Exception) else row


def _fits(row: Chained, before: str, link: int | None = None, chain: str | None = None) -> bool:
    """Return whether the row at `link` gives the chain value `chain` after `before`."""
    if link is not None:
        row = copy.copy(row)
        row.link = link
    try:
        return compute_link(before, row) == (row.chain if chain is None else chain)
    except DAMAGE:
        return False


def _describe_swap(first: Misfit, misfits: list[Misfit]) -> str:
    """Return which of the misfits belongs at the link of the first; "" if none does."""
    if first.row is None:
        return ""
    for other in misfits[1:50]:
        if other.row is None:
            continue
        chains = (first.row.chain, other.row.chain)
        if any(_fits(other.row, first.before, first.link, chain) for chain in chains):
            return f"swapped: {other.table} {other.id} belongs at its link {first.link}"
    return ""


def _describe_gap(first: int, last: int) -> str:
    return "missing: no row stands here" + (f" nor up to link {last}" if last > first else "")


def _name_table(kind: type[Chained]) -> str:
    return str(kind._meta.model_name)
