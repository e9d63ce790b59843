"""The blocks of one call in order, each with its state, and the originals that were not sent.

Originals that are not in view are listed at their old position, one row for each step that removed
some; their blocks are read only when the row is opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from conversations.context.steps.kinds import Fate
from conversations.context.steps.meter_parts import find_part
from conversations.context.steps.pinned import Pin
from conversations.context.view.provenance import Gone, Provenance, Sent
from conversations.inspector.blocks import (
    choose_icon,
    format_block,
    label_block,
    map_tool_names,
    shorten_block,
)
from conversations.models import Conversation, Message
from conversations.rendering.numbers import tokens, write_number

#: Rows of a page; characters up to which a block's text is part of its row.
PAGE, INLINE = 150, 1_200


@dataclass(frozen=True, slots=True)
class Row:
    """One block as it was sent; `text` is "" where it is loaded on demand."""

    index: int
    seq: int
    turn: int | None
    role: str
    part: str
    icon: str
    label: str
    brief: str
    tokens: int
    state: str
    chip: str
    step: int
    is_pinned: bool
    text: str
    is_first: bool


@dataclass(frozen=True, slots=True)
class RemovedRow:
    """Originals that one step removed; removed thinking of all steps is one row with step 0."""

    step: int
    fate: Fate
    words: str
    messages: int
    blocks: int
    tokens: int


@dataclass(frozen=True, slots=True)
class BlockPage:
    """A page of rows; `start` is the position of the first of them among `total`."""

    rows: tuple[Row | RemovedRow, ...]
    start: int
    total: int
    blocks: int
    tokens: int
    #: Each state with its label and the number of blocks in it.
    states: tuple[tuple[str, str, int], ...]

    @property
    def end(self) -> int:
        return self.start + len(self.rows)

    @property
    def before(self) -> int | None:
        return max(0, self.start - PAGE) if self.start else None

    @property
    def after(self) -> int | None:
        return self.end if self.end < self.total else None

    @property
    def last(self) -> int:
        return (self.total - 1) // PAGE * PAGE if self.total else 0


def map_turns(conversation: Conversation) -> dict[int, int | None]:
    """Map message numbers to turn numbers; one query."""
    rows = Message.objects.filter(conversation=conversation)
    return dict(rows.values_list("seq", "turn__number"))


def build_block_page(
    found: Provenance,
    turns: Mapping[int, int | None],
    pins: frozenset[Pin],
    *,
    start: int = 0,
    is_own: bool = False,
) -> BlockPage:
    """Build a page of sent blocks and removed originals, from a position on."""
    every = _merge_rows(found)
    start = start if 0 < start < len(every) else 0
    names = map_names(found)
    page = [
        build_row(one[0], one[1], names, turns, pins, is_own=is_own)
        if isinstance(one, tuple)
        else _build_removed_row(one, turns)
        for one in every[start : start + PAGE]
    ]
    return BlockPage(
        tuple(page),
        start,
        len(every),
        len(found.sent),
        found.view.tokens,
        _count_states(found, is_own=is_own),
    )


def group_key(one: Gone) -> tuple[int, Fate]:
    """Return the group of a removed original: its step and fate, or all thinking together."""
    return 0 if one.fate == "thinking" else one.step, one.fate


def _merge_rows(found: Provenance) -> list[tuple[int, Sent] | list[Gone]]:
    """Insert each group of removed originals before the first sent block that followed it."""
    groups: dict[tuple[int, Fate], list[Gone]] = {}
    for one in found.gone:
        groups.setdefault(group_key(one), []).append(one)
    waiting = sorted(groups.values(), key=lambda group: group[0].original.key, reverse=True)
    merged: list[tuple[int, Sent] | list[Gone]] = []
    for index, sent in enumerate(found.sent):
        place = sent.original.key if sent.original else (sent.seq, 0)
        while waiting and waiting[-1][0].original.key < place:
            merged.append(waiting.pop())
        merged.append((index, sent))
    return [*merged, *reversed(waiting)]


def map_names(found: Provenance) -> dict[str, str]:
    gone = (one.original.block for one in found.gone)
    return map_tool_names([*(one.block for one in found.sent), *gone])


def build_row(
    index: int,
    one: Sent,
    names: Mapping[str, str],
    turns: Mapping[int, int | None],
    pins: frozenset[Pin],
    *,
    is_own: bool,
) -> Row:
    state, chip = _describe_state(one, is_own=is_own)
    text = format_block(one.block) if len(one.block.text) <= INLINE and not _differs(one) else ""
    return Row(
        index,
        one.seq,
        turns.get(one.seq),
        "assistant" if one.kind == "answer" else "user",
        find_part(one.kind, one.block),
        choose_icon(one.kind, one.block),
        label_block(one.kind, one.block, names),
        shorten_block(one.block),
        one.block.tokens,
        state,
        chip,
        one.step,
        bool({one.seq, one.block.id} & pins),
        text,
        one.at == 0,
    )


def _differs(one: Sent) -> bool:
    return one.original is not None and one.original.block.text != one.block.text


def _describe_state(one: Sent, *, is_own: bool) -> tuple[str, str]:
    """Return the state of a block as a class name and as a label."""
    if is_own:
        return "own", _("written for this call")
    match one.state:
        case "shortened" | "changed":
            before = len(format_block(one.original.block)) if one.original else 0
            sizes = {"before": tokens(before), "after": tokens(len(format_block(one.block)))}
            if one.state == "changed":
                return "changed", _("changed")
            return "shortened", _("shortened %(before)s → %(after)s characters") % sizes
        case "restored":
            return "restored", _("sent in full again")
        case "put in":
            return "put-in", _("put in")
        case "cleared":
            return "cleared", _("cleared by the API")
        case _:
            return "verbatim", _("verbatim")


def _count_states(found: Provenance, *, is_own: bool) -> tuple[tuple[str, str, int], ...]:
    """Count the blocks in each state, removed ones included."""
    if is_own:
        return (("own", _("written for this call"), len(found.sent)),)
    names = {
        "verbatim": _("verbatim"),
        "shortened": _("shortened"),
        "changed": _("changed"),
        "cleared": _("cleared by the API"),
        "restored": _("sent in full again"),
        "put in": _("put in"),
        "summary": _("in summary"),
        "left out": _("left out"),
        "thinking": _("thinking removed"),
    }
    every = [*(str(one.state) for one in found.sent), *(str(one.fate) for one in found.gone)]
    counts = {state: every.count(state) for state in names}
    return tuple(
        (state.replace(" ", "-"), name, counts[state])
        for state, name in names.items()
        if counts[state]
    )


def _build_removed_row(group: Sequence[Gone], turns: Mapping[int, int | None]) -> RemovedRow:
    first = group[0]
    seqs = {one.original.seq for one in group}
    known = sorted({turn for seq in seqs if (turn := turns.get(seq)) is not None})
    count = sum(one.original.block.tokens for one in group)
    heads = {
        "summary": _("In summary"),
        "left out": _("Left out"),
        "thinking": _("Thinking removed"),
    }
    parts = [
        *_turn_words(known),
        ngettext("%(n)s message", "%(n)s messages", len(seqs)) % {"n": write_number(len(seqs))},
        _("%(n)s tokens") % {"n": tokens(count)},
    ]
    heading = f"{heads[first.fate]}: {', '.join(parts)}"
    return RemovedRow(group_key(first)[0], first.fate, heading, len(seqs), len(group), count)


def _turn_words(known: Sequence[int]) -> Iterator[str]:
    if len(known) > 1:
        yield _("turns %(first)s–%(last)s") % {"first": known[0], "last": known[-1]}
    elif known:
        yield _("turn %(n)s") % {"n": known[0]}
