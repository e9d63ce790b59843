"""Shorten the largest blocks when dropping exchanges is not enough because the last is too big.

The last exchange begins at the latest prompt, or at the latest answer if that is before it, since
neither can be dropped. Only blocks over 10,000 bytes (over 1,500 if the window itself demands it),
never below 1,000, and only as far as needed: the largest are cut down to a common level. Images and
documents of people, verbatim results and the engine's own blocks in the first message stay; the
first message's own text is shortened last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from conversations.context.policy.gauge import Gauge
from conversations.context.policy.limits import LOW_WATER, Goal, find_goal
from conversations.context.policy.policy import Policy
from conversations.context.steps.kinds import OURS
from conversations.context.steps.recall_list import message_id
from conversations.context.steps.removable_units import find_kept, find_latest_unit
from conversations.context.steps.shorten_results import rewrite_result, shorten_to_text
from conversations.context.steps.tool_handling import find_untouchable, is_pinned
from conversations.context.text.shorten import shorten
from conversations.context.translation import gettext_noop, mark_recorded
from conversations.context.view import wire
from conversations.context.view.edits import SpliceBlocks, Transformation, build_transformation
from conversations.context.view.rules import find_cuts
from conversations.context.view.view import Block, View

_ONE = mark_recorded(gettext_noop("Shortened the largest part: %(why)s"))
_MANY = mark_recorded(gettext_noop("Shortened the %(count)s largest parts: %(why)s"))

LARGE, MEDIUM, SMALLEST = 10_000, 1_500, 1_000
#: Characters of a block besides its text, and the least length of a shortened text.
_FRAME, _LEAST_CHARS = 120, 500


def shrink_blocks(view: View, gauge: Gauge, policy: Policy) -> Transformation | None:
    """Shorten the largest blocks of the last exchange as far as the view's limits demand."""
    hard, low = find_goal(view, gauge, policy), find_goal(view, gauge, policy, LOW_WATER)
    if hard is None or low is None:
        return None
    messages, positions = view.messages, find_cuts(view)
    stay = find_kept(view, positions, policy)
    start = max((at for at in positions[:-1] if messages[at].kind == "prompt"), default=0)
    start = min(start, find_latest_unit(view, positions).start or start)
    older = _Spare.of(view, stay, start)
    every = _Spare.of(view, stay, positions[-2] if len(positions) > 1 else 0)
    change = None
    for least in (LARGE, MEDIUM) if hard.is_window else (LARGE,):
        found = list(_find_large(view, policy, start, least))
        rest = [large for large in found if large.seq != messages[0].seq]
        for chosen in (rest, found):
            change = _build_change(view, hard, low, chosen, older) or change
            if change and _is_enough(change, hard, every):
                return change
    return change if hard.is_window else None


def _is_enough(change: Transformation, hard: Goal, spare: _Spare) -> bool:
    return hard.meets(change.tokens_after - spare.tokens, change.bytes_after - spare.size)


@dataclass(frozen=True, slots=True)
class _Spare:
    """The tokens and bytes that dropping the messages up to an index would free."""

    tokens: int
    size: int

    @classmethod
    def of(cls, view: View, stay: set[int], end: int) -> _Spare:
        gone = [view.trail.messages[at] for at in range(end) if at not in stay]
        return cls(sum(message.tokens for message in gone), sum(message.size for message in gone))


@dataclass(frozen=True, slots=True)
class _Large:
    """A block that may be shortened, and its size in bytes."""

    seq: int
    at: int
    block: Block
    size: int


def _find_large(view: View, policy: Policy, start: int, least: int) -> Iterator[_Large]:
    """Find the blocks that may be shortened, in the first message and from `start` on."""
    stays = find_untouchable(view, policy)
    for index, message in enumerate(view.messages):
        if message.size <= least or 0 < index < start or is_pinned(message, policy):
            continue
        for at, block in enumerate(message.blocks):
            size = len(block.text.encode())
            if size > least and _may_shrink(block) and block.id not in stays | policy.pins:
                yield _Large(message.seq, at, block, size)


def _may_shrink(block: Block) -> bool:
    return block.type in ("text", "tool_result", "tool_use") and block.by not in OURS


def _build_change(
    view: View, hard: Goal, low: Goal, found: list[_Large], spare: _Spare
) -> Transformation | None:
    tokens = view.tokens - spare.tokens - low.tokens
    level = _find_level(tokens, view.size - spare.size - low.size, found)
    # Last first: an edit removes the thinking behind it, which moves the blocks there.
    edits = [
        SpliceBlocks(large.seq, large.at, 1, (new.text,))
        for large in reversed(found)
        if large.size > level and (new := _shorten_block(large, level)) is not None
    ]
    if not edits:
        return None
    words = _ONE if len(edits) == 1 else _MANY
    note = words % {"count": f"{len(edits):,}", "why": hard.explanation}
    return build_transformation(view, "shrink", hard.trigger, edits, note)


def _find_level(tokens: int, size: int, found: list[_Large]) -> int:
    """Return the highest size in bytes to which blocks must be cut to free `tokens` and `size`."""
    lowest, highest = SMALLEST, max((large.size for large in found), default=SMALLEST)
    while lowest < highest:
        level = (lowest + highest + 1) // 2
        cut = [(large, large.size - level) for large in found if large.size > level]
        freed = sum(large.block.tokens * gone // large.size for large, gone in cut)
        if freed >= tokens and sum(gone for _, gone in cut) >= size:
            lowest = level
        else:
            highest = level - 1
    return lowest


def _shorten_block(large: _Large, level: int) -> Block | None:
    """Return the block cut to about `level` bytes; None if it cannot be made smaller."""
    block, value = large.block, large.block.value
    limit = max(_LEAST_CHARS, level * len(block.text) // large.size - _FRAME)
    match block.type:
        case "tool_result":
            return rewrite_result(block, partial(shorten_to_text, limit=limit), "shrink")
        case "tool_use":
            given = wire.decode(shorten(wire.encode(value["input"]), limit))
            if not isinstance(given, dict):
                return None
            new = {**value, "input": given}
        case _:
            new = {**value, "text": shorten(value["text"], limit, message_id(large.seq))}
    made = Block(wire.encode(new), "shrink")
    return made if len(made.text) < len(block.text) and made.tokens < block.tokens else None
