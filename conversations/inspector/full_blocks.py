"""Full blocks: one beside its original, and the originals that a step removed from view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conversations.context.steps.pinned import Pin
from conversations.context.steps.recall_list import message_id
from conversations.context.view.block_originals import Original
from conversations.context.view.provenance import Provenance
from conversations.inspector.blocks import cut_text, format_block, label_block
from conversations.inspector.call_blocks import INLINE, Row, build_row, group_key, map_names
from conversations.reductions.shapes import PinState

#: Originals of one page.
PAGE = 60


@dataclass(frozen=True, slots=True)
class RemovedBlock:
    """One original that is no longer in view."""

    seq: int
    turn: int | None
    label: str
    tokens: int
    text: str
    cut: int


@dataclass(frozen=True, slots=True)
class FullBlock:
    """A block as it was sent, and beside it its original where the text differs."""

    row: Row
    sent: str
    sent_cut: int
    original: str
    original_cut: int
    has_original: bool
    #: The original's pin state; None for blocks that the engine added.
    keep: PinState | None


def read_full_block(
    found: Provenance,
    index: int,
    turns: Mapping[int, int | None],
    pins: tuple[frozenset[Pin], frozenset[Pin]],
    *,
    is_own: bool = False,
) -> FullBlock | None:
    """Return one block in full, or None; `pins` are those at the call and the present ones."""
    if not 0 <= index < len(found.sent):
        return None
    one = found.sent[index]
    row = build_row(index, one, map_names(found), turns, pins[0], is_own=is_own)
    sent, sent_cut = cut_text(format_block(one.block))
    original = one.original
    if original is None or original.block.text == one.block.text:
        return FullBlock(row, sent, sent_cut, "", 0, False, _pin_state(original, pins[1]))
    before, before_cut = cut_text(format_block(original.block))
    return FullBlock(row, sent, sent_cut, before, before_cut, True, _pin_state(original, pins[1]))


def list_removed_blocks(
    found: Provenance, step: int, fate: str, turns: Mapping[int, int | None], start: int
) -> tuple[list[RemovedBlock], int | None]:
    """Return a page of the originals that a step removed, and the position of the next page."""
    every = [one.original for one in found.gone if group_key(one) == (step, fate)]
    names = map_names(found)
    page = [_build_removed(one, names, turns) for one in every[start : start + PAGE]]
    after = start + len(page)
    return page, after if after < len(every) else None


def _build_removed(
    one: Original, names: Mapping[str, str], turns: Mapping[int, int | None]
) -> RemovedBlock:
    text, left = cut_text(format_block(one.block), 4 * INLINE)
    turn = turns.get(one.seq)
    return RemovedBlock(
        one.seq, turn, label_block(one.kind, one.block, names), one.block.tokens, text, left
    )


def _pin_state(original: Original | None, pins: frozenset[Pin]) -> PinState | None:
    """Return the id of an original for the recall tool, and whether it is pinned."""
    if original is None:
        return None
    is_result = original.block.type == "tool_result"
    name = original.block.id if is_result else message_id(original.seq)
    return PinState(name, bool({name, original.seq} & pins))
