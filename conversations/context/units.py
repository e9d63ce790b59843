"""What may leave the view together, and what must stay.

A unit is what lies between two neighbouring cuts: one message, or an answer with the results of its
calls. Steps drop whole units and never the first message, the latest prompt, the latest answer with
its results, or a unit that holds a result of a verbatim tool.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise

from conversations.context.edits import SpliceMessages
from conversations.context.policy import Policy
from conversations.context.results import calls
from conversations.context.view import Kind, View


def kept(view: View, positions: list[int], policy: Policy) -> set[int]:
    """Give the indexes of messages that no step may drop."""
    stay = {0, _last(view, "prompt")}
    at = _last(view, "answer")
    end = bisect_right(positions, at)
    stay.update(range(positions[end - 1], positions[end] if end < len(positions) else at + 1))
    if policy.verbatim_tools:
        messages = view.messages
        names = {call.id: call.name for call in calls(view).values()}
        for start, end in pairwise(positions):
            results = (found for message in messages[start:end] for found in message.shape.results)
            if any(names.get(result.id) in policy.verbatim_tools for result in results):
                stay.update(range(start, end))
    return stay


def _last(view: View, kind: Kind) -> int:
    """Give the index of the last message of a kind; 0 when there is none."""
    messages = view.trail.messages
    return next((at for at in range(view.length - 1, 0, -1) if messages[at].kind == kind), 0)


def dropping(view: View, indexes: Iterable[int]) -> list[SpliceMessages]:
    """Give the edits that take out the messages at these ascending indexes."""
    messages = view.messages
    edits: list[SpliceMessages] = []
    last = -2
    for at in indexes:
        first = edits.pop().first if at == last + 1 else messages[at].seq
        edits.append(SpliceMessages(first, messages[at].seq))
        last = at
    return edits
