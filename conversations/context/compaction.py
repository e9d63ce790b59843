"""Compact old tool results: keep the head of each and say where the rest is.

The most recent batch is never touched, nor are errors, verbatim tools, and what a person restored.
What was compacted is known by its record (`Block.by`), not by the notice in its text, which any
tool can print. The new text of a result is made once and remembered on the trail, so a context that
stays over its budget with nothing left to compact costs nothing to look at again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from conversations.context.edits import SpliceBlocks, Transformation, transformation
from conversations.context.gauge import Gauge
from conversations.context.policy import Policy
from conversations.context.results import kept_head, rewritten
from conversations.context.view import Message, View

_DONE = ("compaction", "restore")


def compaction(
    view: View, gauge: Gauge, policy: Policy, *, everything: bool = False
) -> Transformation | None:
    """Shorten every tool result but the latest batch once the input outgrows its budget.

    `everything` takes the latest batch too, whatever the budget: the last resort of an overflow.
    """
    budget = policy.input_token_budget
    if everything:
        trigger = gauge.passes(gauge.room, "window_reserve_tokens")
    else:
        trigger = gauge.passes_or_room(budget, "input_token_budget")
    if trigger is None:
        return None
    limit, verbatim = policy.tool_result_retention_chars, policy.verbatim_tools
    found = view.learn(
        ("compaction", limit, verbatim), lambda: _Found(limit, verbatim), _Found.read
    )
    edits = [edit for edit in found.edits if everything or edit.seq != found.latest]
    if not edits:
        return None
    count = len(edits)
    what = f"{count} {'' if everything else 'old '}tool result{'s' if count > 1 else ''}"
    note = (
        f"Compacted {what}: input tokens {trigger.number:,} "
        f"exceeded the budget of {trigger.threshold:,}"
    )
    return transformation(view, "compaction", trigger, edits, note)


@dataclass(slots=True)
class _Found:
    """What can be compacted in the messages read so far, and which batch is the latest."""

    limit: int
    verbatim: tuple[str, ...]
    latest: int = 0
    edits: list[SpliceBlocks] = field(default_factory=list)
    #: Ids of the calls of verbatim tools.
    protected: set[str] = field(default_factory=set)

    def read(self, message: Message) -> None:
        shape = message.shape
        for call in shape.calls:
            if call.name in self.verbatim:
                self.protected.add(call.id)
        if shape.results:
            self.latest = message.seq
        for result in shape.results:
            if result.is_error or result.id in self.protected:
                continue
            if result.chars > self.limit or result.media:
                self._look(message, result.at)

    def _look(self, message: Message, at: int) -> None:
        if message.by and message.by[at] in _DONE:
            return
        block = message.blocks[at]
        is_whole = block.by != "ingest"
        rewrite = partial(kept_head, limit=self.limit, is_whole=is_whole)
        new = rewritten(block, rewrite, "compaction")
        if new is not None:
            self.edits.append(SpliceBlocks(message.seq, at, 1, (new.text,)))
