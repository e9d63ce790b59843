"""Shape a tool result before it is first sent, so that no signature and no cached prefix is broken.

Only results after the last answer are considered: those have never been sent. The original is
stored in full and can be recalled.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from conversations.context.policy.gauge import Gauge
from conversations.context.policy.policy import Policy
from conversations.context.steps.compaction import RESULTS
from conversations.context.steps.shorten_results import rewrite_result, shorten_texts
from conversations.context.steps.tool_handling import find_rule, find_untouchable
from conversations.context.translation import gettext_noop, mark_recorded, write_count
from conversations.context.view.edits import (
    SpliceBlocks,
    Transformation,
    Trigger,
    build_transformation,
)
from conversations.context.view.view import Message, View

_NOTE = mark_recorded(
    gettext_noop("Shortened %(what)s before sending: %(number)s characters exceeded %(most)s")
)

#: The writers of a block whose text is that of the original: a repair may have replaced an image.
_WHOLE = ("", "repair")


def shape_new_results(view: View, gauge: Gauge, policy: Policy) -> Transformation | None:
    """Shorten new results over the limit, errors included, except those of verbatim tools.

    While the policy promises to remove nothing, only a tool's own rule shortens its results.
    """
    if not policy.max_tool_result_chars:
        return None
    is_kept = gauge.tokens <= policy.promise(gauge.window)
    edits: list[SpliceBlocks] = []
    longest = most = 0
    for message in _list_unsent(view):
        for result in message.shape.results:
            rule = find_rule(view, result.id, policy)
            limit = rule.cap or policy.max_tool_result_chars
            block = message.blocks[result.at] if result.chars > limit else None
            if block is None or rule.way == "keep" or (is_kept and not rule.cap):
                continue
            if block.by not in _WHOLE or result.id in find_untouchable(view, policy):
                continue
            rewrite = partial(shorten_texts, limit=limit, is_text=rule.way == "head_tail")
            new = rewrite_result(block, rewrite, "ingest")
            if new is not None:
                longest, most = max((longest, most), (result.chars, limit))
                edits.append(SpliceBlocks(message.seq, result.at, 1, (new.text,)))
    if not edits:
        return None
    trigger = Trigger(longest, most, "counted", "max_tool_result_chars")
    what = write_count(*RESULTS, len(edits))
    note = _NOTE % {"what": what, "number": f"{longest:,}", "most": f"{most:,}"}
    return build_transformation(view, "ingest", trigger, edits, note)


def _list_unsent(view: View) -> Iterator[Message]:
    for at in range(view.length - 1, -1, -1):
        message = view.trail.messages[at]
        if message.kind == "answer":
            return
        yield message
