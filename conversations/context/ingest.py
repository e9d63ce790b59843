"""Shape a tool result before it is first sent, so that no signature and no cached prefix is broken.

Only results behind the last answer are looked at: those have never been sent. The original is
stored whole and can be recalled.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from conversations.context.edits import SpliceBlocks, Transformation, Trigger, transformation
from conversations.context.gauge import Gauge
from conversations.context.policy import Policy
from conversations.context.results import calls, rewritten, shortened
from conversations.context.view import Message, View


def ingest(view: View, gauge: Gauge, policy: Policy) -> Transformation | None:
    """Shorten new results over the limit; errors too, but never those of verbatim tools."""
    limit = policy.max_tool_result_chars
    if not limit:
        return None
    edits: list[SpliceBlocks] = []
    longest = 0
    for message in _unsent(view):
        for result in message.shape.results:
            block = message.blocks[result.at] if result.chars > limit else None
            if block is None or block.by or _is_verbatim(view, result.id, policy):
                continue
            new = rewritten(block, partial(shortened, limit=limit), "ingest")
            if new is not None:
                longest = max(longest, result.chars)
                edits.append(SpliceBlocks(message.seq, result.at, 1, (new.text,)))
    if not edits:
        return None
    trigger = Trigger(longest, limit, "counted", "max_tool_result_chars")
    what = "1 tool result" if len(edits) == 1 else f"{len(edits)} tool results"
    note = f"Shortened {what} before sending: {longest:,} characters exceeded {limit:,}"
    return transformation(view, "ingest", trigger, edits, note)


def _unsent(view: View) -> Iterator[Message]:
    for at in range(view.length - 1, -1, -1):
        message = view.trail.messages[at]
        if message.kind == "answer":
            return
        yield message


def _is_verbatim(view: View, id: str, policy: Policy) -> bool:
    call = calls(view).get(id)
    return call is not None and call.name in policy.verbatim_tools
