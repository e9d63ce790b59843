"""The log of a replay: the view after each change, and the number of refused summaries."""

from __future__ import annotations

from conversations.context.view import edits
from conversations.context.view.edits import Transformation
from conversations.context.view.view import View


def fold_change(view: View, change: Transformation) -> View:
    """Return the view after a change, with its edits stored and loaded again."""
    if change.outcome == "expected":
        return view.with_cleared(tuple(change.reason.split()))
    if change.outcome != "applied":
        return view
    return edits.apply(view, change.kind, edits.load_edits(edits.dump_edits(change.edits)))


def count_refused(outcomes: list[str]) -> int:
    """Count the consecutive refused summaries, the latest last."""
    count = 0
    for outcome in filter(None, reversed(outcomes)):
        if outcome == "applied":
            break
        count += 1
    return count
