"""What can be removed from the view together, and what must stay.

A unit lies between two neighbouring cuts: one message, or an answer with the results of its calls.
Steps drop whole units and never the first message, the latest prompt, the latest answer with its
results, or a unit that holds something pinned or a verbatim result.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise

from conversations.context.policy.policy import Policy
from conversations.context.steps.tool_handling import find_untouchable, is_pinned
from conversations.context.view.edits import SpliceMessages
from conversations.context.view.view import Kind, Message, View


def find_kept(view: View, positions: list[int], policy: Policy) -> set[int]:
    """Return the indexes of messages that no step may drop."""
    stay = {0, _find_last(view, "prompt"), *find_latest_unit(view, positions)}
    return stay | find_pinned(view, positions, policy)


def find_pinned(view: View, positions: list[int], policy: Policy) -> set[int]:
    """Return the indexes of messages in a unit with a pinned or verbatim part."""
    stays = find_untouchable(view, policy)
    found: set[int] = set()
    if stays or policy.pins:
        messages = view.messages
        for start, end in pairwise(positions):
            if any(_must_stay(message, stays, policy) for message in messages[start:end]):
                found.update(range(start, end))
    return found


def find_latest_unit(view: View, positions: list[int]) -> range:
    """Return the indexes of the latest answer and its results.

    While one of its calls waits there is no cut behind it, and all later messages belong to it.
    """
    at = _find_last(view, "answer")
    end = bisect_right(positions, at)
    return range(positions[end - 1], positions[end] if end < len(positions) else view.length)


def _must_stay(message: Message, stays: set[str], policy: Policy) -> bool:
    shape = message.shape
    return (
        is_pinned(message, policy)
        or any(result.id in stays for result in shape.results)
        or any(call.id in policy.pins for call in shape.calls)
    )


def _find_last(view: View, kind: Kind) -> int:
    """Return the index of the last message of a kind; 0 when there is none."""
    messages = view.trail.messages
    return next((at for at in range(view.length - 1, 0, -1) if messages[at].kind == kind), 0)


def build_drops(view: View, indexes: Iterable[int]) -> list[SpliceMessages]:
    """Return the edits that remove the messages at these ascending indexes."""
    messages = view.messages
    edits: list[SpliceMessages] = []
    last = -2
    for at in indexes:
        first = edits.pop().first if at == last + 1 else messages[at].seq
        edits.append(SpliceMessages(first, messages[at].seq))
        last = at
    return edits
