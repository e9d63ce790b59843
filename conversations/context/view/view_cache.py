"""Carry over the states folded from a view to the view that an edit made of it.

Shortening results changes no call, no pairing and no order, so states about those still hold and
need not be computed again from the first message. They are moved, not shared: a state belongs to
one trail. After any other edit, everything is read again.
"""

from __future__ import annotations

from collections.abc import Iterable

from conversations.context.view.message_shape import Shape
from conversations.context.view.view import Message, Trail, View

#: Keys of `View.fold_cached` whose states depend on the structure of messages alone.
RULES_FOLD, CALLS_FOLD, CALL_IDS_FOLD = "rules", "calls", "call ids"
THINKING_FOLD, COMPACTIONS_FOLD = "thinking", "compaction blocks"
SERVER_CALLS_FOLD = "server calls"
STRUCTURAL = (
    RULES_FOLD, CALLS_FOLD, CALL_IDS_FOLD, THINKING_FOLD, COMPACTIONS_FOLD, SERVER_CALLS_FOLD,
)  # fmt: skip


def carry_states(view: View, trail: Trail, touched: Iterable[int]) -> None:
    """Move the structural states of `view` to a trail that differs at these indexes alone."""
    known = view.trail.folds
    keys = [key for key in STRUCTURAL if key in known and known[key][0] <= view.length]
    if all(_is_alike(view.trail.messages[at], trail.messages[at]) for at in touched):
        trail.folds.update((key, known.pop(key)) for key in keys)


def _is_alike(old: Message, new: Message) -> bool:
    is_same = old.has_thinking == new.has_thinking
    return is_same and _read_structure(old.shape) == _read_structure(new.shape)


def _read_structure(shape: Shape) -> tuple[object, ...]:
    return (
        shape.flaw, shape.calls, [result.id for result in shape.results], shape.server_calls,
        shape.server_results, shape.callers, shape.others, shape.is_late, shape.marks, shape.first,
        shape.last, shape.compactions, shape.signed,
    )  # fmt: skip
