"""What may leave the view together, and what must stay.

A unit is what lies between two neighbouring cuts: one message, or an answer with the results of its
calls. Steps drop whole units and never the first message, the latest prompt, or a unit that holds a
result of a verbatim tool.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from conversations.context.edits import SpliceMessages
from conversations.context.policy import Policy
from conversations.context.results import calls
from conversations.context.view import View


def kept(view: View, positions: list[int], policy: Policy) -> set[int]:
    """Give the indexes of messages that no step may drop."""
    stay = {0}
    messages = view.messages
    for at in range(len(messages) - 1, 0, -1):
        if messages[at].kind == "prompt":
            stay.add(at)
            break
    if policy.verbatim_tools:
        names = {call.id: call.name for call in calls(view).values()}
        for start, end in pairwise(positions):
            results = (found for message in messages[start:end] for found in message.shape.results)
            if any(names.get(result.id) in policy.verbatim_tools for result in results):
                stay.update(range(start, end))
    return stay


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
