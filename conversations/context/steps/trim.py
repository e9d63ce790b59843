"""Drop the oldest exchanges, whole, until the messages fit; then the oldest rounds.

The first message stays, which has the first request and the summary; so do the latest prompt,
results of verbatim tools and the last unit. Trimming goes down to a low-water mark, so that the
cached prefix is not broken again soon, and leaves a recall list. If dropping cannot reach the goal,
nothing is dropped, unless the window itself demands it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from conversations.context.policy.gauge import Gauge
from conversations.context.policy.limits import LOW_WATER, Goal, find_goal
from conversations.context.policy.policy import Policy
from conversations.context.steps.removable_units import build_drops, find_kept
from conversations.context.steps.removed_lists import write_lists, write_record
from conversations.context.translation import gettext_noop, mark_recorded
from conversations.context.view import wire
from conversations.context.view.cost_decision import Decision
from conversations.context.view.edits import (
    Edit,
    SpliceBlocks,
    Transformation,
    Trigger,
    build_transformation,
)
from conversations.context.view.rules import find_cuts
from conversations.context.view.view import View

_NOTE = mark_recorded(gettext_noop("Dropped the %(count)s oldest messages: %(why)s"))


def drop_exchanges(view: View, gauge: Gauge, policy: Policy) -> Transformation | None:
    """Drop the oldest exchanges but the last one; None if that would not be enough."""
    hard, low = find_goal(view, gauge, policy), find_goal(view, gauge, policy, LOW_WATER)
    if hard is None or low is None:
        return None
    messages, positions = view.messages, find_cuts(view)
    ends = [at for at in positions[1:-1] if messages[at].kind == "prompt"]
    dropped = _find_oldest(view, policy, hard, low, ends)
    return _build_change(view, policy, hard, dropped) if dropped else None


def drop_rounds(view: View, gauge: Gauge, policy: Policy) -> Transformation | None:
    """Drop the oldest rounds; the last unit stays."""
    hard, low = find_goal(view, gauge, policy), find_goal(view, gauge, policy, LOW_WATER)
    if hard is None or low is None:
        return None
    positions = find_cuts(view)
    dropped = _find_oldest(view, policy, hard, low, positions[1:-1])
    if not dropped and hard.is_window:
        stay = find_kept(view, positions, policy)
        dropped = [at for at in range(1, positions[-2]) if at not in stay]
    return _build_change(view, policy, hard, dropped) if dropped else None


def _find_oldest(
    view: View, policy: Policy, hard: Goal, low: Goal, ends: Iterable[int]
) -> list[int]:
    """Return the indexes to drop: as few as meet the low goal, else the hard one."""
    messages = view.messages
    stay = find_kept(view, find_cuts(view), policy)
    limit = hard.lists_chars
    tokens, size, count = view.tokens + limit, view.size + 3 * limit, view.length
    dropped: list[int] = []
    enough = start = 0
    for end in ends:
        for at in range(start, end):
            if at not in stay:
                dropped.append(at)
                tokens -= messages[at].tokens
                size -= messages[at].size
                count -= 1
        start = end
        if low.meets(tokens, size, count):
            return dropped
        if not enough and hard.meets(tokens, size, count):
            enough = len(dropped)
    return dropped[:enough]


def _build_change(view: View, policy: Policy, hard: Goal, indexes: list[int]) -> Transformation:
    return drop_messages(view, policy, indexes, hard.trigger, hard.explanation, hard.lists_chars)


def drop_messages(
    view: View,
    policy: Policy,
    indexes: list[int],
    trigger: Trigger,
    explanation: str,
    lists_chars: int,
    decision: Decision | None = None,
) -> Transformation:
    """Drop the messages at these indexes; the lists about them are within `lists_chars`."""
    edits: list[Edit] = [*build_drops(view, indexes)]
    note = _NOTE % {"count": f"{len(indexes):,}", "why": explanation}
    # If the lists would be longer than what is dropped, only the record of actions is kept.
    for write in (write_lists, write_record):
        put = _build_notice(view, policy, indexes, lists_chars, write)
        change = build_transformation(view, "trim", trigger, [put, *edits], note, decision)
        if change.bytes_after < change.bytes_before and change.tokens_after < change.tokens_before:
            return change
    return build_transformation(view, "trim", trigger, edits, note, decision)


def _build_notice(
    view: View, policy: Policy, indexes: list[int], limit: int, write: Callable[..., str]
) -> SpliceBlocks:
    """Write in the first message that messages were dropped, with the lists about them."""
    first = view.messages[0]
    by = first.by or ("",) * len(first.blocks)
    at = by.index("trim") if "trim" in by else len(by)
    old = first.blocks[at : at + 1]
    listed = write(view, [view.messages[index] for index in indexes], old, policy, limit)
    notice = "[earlier messages were dropped to make room]"
    text = "\n".join(filter(None, [notice, listed]))
    return SpliceBlocks(first.seq, at, len(old), (wire.encode({"type": "text", "text": text}),))
