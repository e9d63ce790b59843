"""Compact old tool results: keep the head of each and say where the rest is.

The latest batch is never touched, nor are errors, verbatim tools, and results that a person
restored. Compacted results are recognized by their record (`Block.by`), not by the notice in their
text, which any tool can print. The new text of a result is made once and stored on the trail, so
checking a context again that is over its budget with nothing left to compact costs nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from conversations.context.policy.gauge import Gauge
from conversations.context.policy.policy import Policy
from conversations.context.steps.shorten_results import (
    Rewrite,
    keep_head,
    rewrite_result,
    shorten_to_text,
)
from conversations.context.steps.tool_handling import find_untouchable, list_tools
from conversations.context.translation import gettext_noop, mark_recorded, write_count
from conversations.context.view.edits import SpliceBlocks, Transformation, build_transformation
from conversations.context.view.message_shape import Result
from conversations.context.view.view import Message, View

#: One tool result and many, of the latest batch or older ones alone.
RESULTS = (
    mark_recorded(gettext_noop("%(count)s tool result")),
    mark_recorded(gettext_noop("%(count)s tool results")),
)
OLD_RESULTS = (
    mark_recorded(gettext_noop("%(count)s old tool result")),
    mark_recorded(gettext_noop("%(count)s old tool results")),
)
EXCEEDED = mark_recorded(gettext_noop("input tokens %(number)s exceeded %(most)s"))
_BUDGET = mark_recorded(
    gettext_noop("Compacted %(what)s: input tokens %(number)s exceeded the budget of %(most)s")
)

#: Tokens of the notice in a compacted result; a cut that saves less is not worth it.
_NOTICE = 56
_DONE = ("compaction", "restore")


def compact_results(
    view: View, gauge: Gauge, policy: Policy, *, everything: bool = False
) -> Transformation | None:
    """Shorten every tool result but the latest batch once the input exceeds its budget.

    `everything` includes the latest batch, whatever the budget: the last resort after an overflow.
    """
    budget = policy.input_token_budget
    if everything:
        trigger = gauge.passes(gauge.room, "window_reserve_tokens")
    else:
        trigger = gauge.passes_or_room(budget, "input_token_budget")
    if trigger is None:
        return None
    ready = find_compactable(view, policy)
    chosen = ready.found if everything else ready.old
    edits = [one.rewritten.edit for one in chosen if one.rewritten]
    if not edits:
        return None
    count = len(edits)
    what = write_count(*(RESULTS if everything else OLD_RESULTS), count)
    note = _BUDGET % {
        "what": what, "number": f"{trigger.number:,}", "most": f"{trigger.threshold:,}"
    }  # fmt: skip
    return ready.record_applied(build_transformation(view, "compaction", trigger, edits, note))


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The edit that compacts a result, and the estimated tokens that it saves."""

    edit: SpliceBlocks
    saved: int


@dataclass(eq=False)
class CompactableResult:
    """A result that can be compacted; its new text is made when first needed."""

    message: Message
    result: Result
    rewrite: Rewrite

    @cached_property
    def rewritten(self) -> Rewritten | None:
        """How it is compacted; None if that would save less than its notice costs."""
        block = self.message.blocks[self.result.at]
        new = rewrite_result(block, self.rewrite, "compaction")
        if new is None or block.tokens - new.tokens < _NOTICE:
            return None
        edit = SpliceBlocks(self.message.seq, self.result.at, 1, (new.text,))
        return Rewritten(edit, block.tokens - new.tokens)

    @property
    def seq(self) -> int:
        return self.message.seq

    def likely(self, limit: int) -> int:
        """Estimate the tokens that compacting frees, without doing it."""
        results = self.message.shape.results
        chars = sum(one.chars for one in results)
        freed = max(0, self.result.chars - limit)
        return self.message.tokens * freed // max(1, chars)


@dataclass(frozen=True, slots=True)
class Compactable:
    """All results that can be compacted, and the number of the latest results message."""

    found: list[CompactableResult]
    latest: int
    key: Hashable
    state: _Found

    @property
    def old(self) -> list[CompactableResult]:
        """All but the latest batch."""
        return [one for one in self.found if one.seq != self.latest]

    def between(self, first: int, last: int) -> list[CompactableResult]:
        """Return those of messages `first` to `last` (excluded), without the latest batch."""
        return [one for one in self.old if first <= one.seq < last]

    def record_applied(self, change: Transformation) -> Transformation:
        """Store on the compacted view what is still compactable, so that it is not read again."""
        gone = {(edit.seq, edit.at) for edit in change.edits if isinstance(edit, SpliceBlocks)}
        change.view_after.store_fold(self.key, self.state.without(gone))
        return change


def find_compactable(view: View, policy: Policy) -> Compactable:
    """Find what can be compacted; each result is read once."""
    limit, structured = policy.tool_result_retention_chars, policy.structure_kept
    keeps, texts = list_tools(policy, "keep"), list_tools(policy, "head_tail")
    key = ("compaction", limit, structured, keeps, texts)
    state = view.fold_cached(key, lambda: _Found(limit, structured, keeps, texts), _Found.read)
    stays = find_untouchable(view, policy)
    found = [one for one in state.ready if one.result.id not in stays]
    return Compactable(found, state.latest, key, state)


@dataclass(slots=True)
class _Found:
    """What can be compacted in the messages read so far, and the number of the latest batch."""

    limit: int
    structured: bool
    keeps: frozenset[str]
    texts: frozenset[str]
    latest: int = 0
    ready: list[CompactableResult] = field(default_factory=list)
    #: Ids of calls of tools with the rule `keep`, and of those with `head_tail`.
    kept: set[str] = field(default_factory=set)
    textual: set[str] = field(default_factory=set)

    def read(self, message: Message) -> None:
        shape = message.shape
        for call in shape.calls:
            if call.name in self.keeps:
                self.kept.add(call.id)
            if call.name in self.texts:
                self.textual.add(call.id)
        if shape.results:
            self.latest = message.seq
        for result in shape.results:
            if result.is_error or result.id in self.kept:
                continue
            if result.chars > self.limit or result.media:
                self._look(message, result)

    def without(self, gone: Collection[tuple[int, int]]) -> _Found:
        """Return the state for the view in which these (message, block) pairs are compacted."""
        left = [one for one in self.ready if (one.seq, one.result.at) not in gone]
        return replace(self, ready=left, kept=set(self.kept), textual=set(self.textual))

    def _look(self, message: Message, result: Result) -> None:
        by = message.by[result.at] if message.by else ""
        if by in _DONE:
            return
        if self.structured:
            is_text = result.id in self.textual
            rewrite: Rewrite = partial(shorten_to_text, limit=self.limit, is_text=is_text)
        else:
            rewrite = partial(keep_head, limit=self.limit, is_whole=by != "ingest")
        self.ready.append(CompactableResult(message, result, rewrite))
