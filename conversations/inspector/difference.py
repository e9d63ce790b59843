"""The difference between two calls: blocks, parameters, and the part the cache can return.

Blocks are the same when they have the same original; blocks that the engine added are the same when
they have the same position, so a summary that was written again is one altered block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from conversations.context.view.prefix import CommonPrefix, compare_prefix
from conversations.context.view.provenance import Sent
from conversations.inspector.blocks import (
    cut_text,
    format_block,
    label_block,
    map_tool_names,
    shorten_block,
)
from conversations.inspector.parameters import Parameters, parse_parameters
from conversations.inspector.sent_messages import TracedCall
from conversations.models import ApiCall
from conversations.reductions.word_diff import DiffBudget, Piece, compare_texts

#: Changed blocks that are shown; characters of one that is shown in full.
MOST, SHOWN = 120, 6_000
#: Consecutive rows of one kind from which on they are merged into one row.
MANY = 8
Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Altered:
    """One block that differs; `pieces` is None where both texts are shown side by side."""

    what: Literal["added", "removed", "altered"]
    index: int | None
    label: str
    brief: str
    delta: int
    pieces: tuple[Piece, ...] | None
    before: str = ""
    before_cut: int = 0
    after: str = ""
    after_cut: int = 0


@dataclass(frozen=True, slots=True)
class Same:
    """A run of equal blocks."""

    blocks: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Run:
    """A long run of blocks that were all added, or all removed."""

    what: Literal["added", "removed"]
    rows: tuple[Altered, ...]

    @property
    def delta(self) -> int:
        return sum(row.delta for row in self.rows)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that differs."""

    name: str
    pieces: tuple[Piece, ...] | None
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference; sums count all blocks, of which `more` are not in `rows`."""

    rows: tuple[Altered | Same | Run, ...]
    more: int
    added: int
    removed: int
    altered: int
    delta: int
    parameters: tuple[Parameter, ...]
    prefix: CommonPrefix | None
    #: Blocks of the later call.
    blocks: int


def compare_calls(
    one: ApiCall, other: ApiCall, before: TracedCall, after: TracedCall
) -> Difference:
    """Compare two calls; raises one of DAMAGE."""
    old, new = before.found, after.found
    pairs = list(_align_blocks(old.sent, new.sent))
    budget = DiffBudget()
    envelopes = parse_parameters(one.envelope), parse_parameters(other.envelope)
    changed = tuple(_compare_parameters(*envelopes, budget))
    names = map_tool_names([sent.block for sent in (*old.sent, *new.sent)])
    places = {id(sent): at for at, sent in enumerate(new.sent)}
    rows: list[Altered | Same] = []
    counts: Counter[str] = Counter()
    more = 0
    for left, right in pairs:
        if left is not None and right is not None and left.block.text == right.block.text:
            last = rows.pop() if rows and isinstance(rows[-1], Same) else Same(0, 0)
            blocks, tokens = getattr(last, "blocks", 0), getattr(last, "tokens", 0)
            rows.append(Same(blocks + 1, tokens + right.block.tokens))
            continue
        counts[_classify(left, right)] += 1
        if counts.total() > MOST:
            more += 1
        else:
            place = places[id(right)] if right is not None else None
            rows.append(_compare_blocks(left, right, place, names, budget))
    is_bound = one.binding == other.binding
    return Difference(
        tuple(_gather_runs(rows)),
        more,
        counts["added"],
        counts["removed"],
        counts["altered"],
        new.view.tokens - old.view.tokens,
        changed,
        compare_prefix(old.view, new.view) if is_bound else None,
        len(new.sent),
    )


def _gather_runs(rows: Sequence[Altered | Same]) -> Iterable[Altered | Same | Run]:
    for what, group in groupby(rows, key=lambda row: getattr(row, "what", "")):
        found = list(group)
        alike = tuple(row for row in found if isinstance(row, Altered))
        if what == "altered" or len(alike) < MANY:
            yield from found
        else:
            yield Run("added" if what == "added" else "removed", alike)


def _key(sent: Sent, seen: Counter[Key]) -> Key:
    if sent.original is not None:
        return ("original", *sent.original.key)
    place: Key = ("put in", sent.seq, sent.kind, sent.block.type, sent.block.by)
    seen[place] += 1
    return (*place, seen[place])


def _align_blocks(
    old: Sequence[Sent], new: Sequence[Sent]
) -> Iterable[tuple[Sent | None, Sent | None]]:
    """Pair blocks with the same key; a block that moved is removed here and added there."""
    seen: tuple[Counter[Key], Counter[Key]] = (Counter(), Counter())
    olds = [(_key(sent, seen[0]), sent) for sent in old]
    news = [(_key(sent, seen[1]), sent) for sent in new]
    there = {key: at for at, (key, _) in enumerate(news)}
    at = 0
    for key, sent in olds:
        place = there.get(key, -1)
        if place < at:
            yield sent, None
            continue
        for _, added in news[at:place]:
            yield None, added
        yield sent, news[place][1]
        at = place + 1
    for _, added in news[at:]:
        yield None, added


def _classify(left: Sent | None, right: Sent | None) -> Literal["added", "removed", "altered"]:
    if left is None:
        return "added"
    return "removed" if right is None else "altered"


def _compare_blocks(
    left: Sent | None,
    right: Sent | None,
    place: int | None,
    names: dict[str, str],
    budget: DiffBudget,
) -> Altered:
    shown = right or left
    assert shown is not None  # noqa: S101
    before = format_block(left.block) if left else ""
    after = format_block(right.block) if right else ""
    pieces = compare_texts(before, after, budget) if left and right else None
    old, old_cut = ("", 0) if pieces else cut_text(before, SHOWN)
    new, new_cut = ("", 0) if pieces else cut_text(after, SHOWN)
    delta = (right.block.tokens if right else 0) - (left.block.tokens if left else 0)
    name = label_block(shown.kind, shown.block, names)
    what = _classify(left, right)
    return Altered(
        what, place, name, shorten_block(shown.block), delta, pieces, old, old_cut, new, new_cut
    )


def _compare_parameters(
    before: Parameters, after: Parameters, budget: DiffBudget
) -> Iterable[Parameter]:
    old, new = _flatten(before), _flatten(after)
    for name in dict.fromkeys([*old, *new]):
        left, right = old.get(name, ""), new.get(name, "")
        if left != right:
            both = left and right
            pieces = compare_texts(left, right, budget) if both else None
            yield Parameter(name, pieces, left[:SHOWN], right[:SHOWN])


def _flatten(found: Parameters) -> dict[str, str]:
    tools = {f"tool {tool.name}": f"{tool.description}\n{tool.schema}" for tool in found.tools}
    return {"system": found.system, **tools, **dict(found.rest)}
