"""Context editing by the API: what it clears from a request, and the parameters that request it.

Context editing clears the results of old tool calls for one request; the stored history does not
change, and thinking stays signed over it. The API reports afterwards how much it cleared, not what.
It clears in the order of the calls and spares the newest results and excluded tools, so what the
model will not see can be predicted: the prediction is recorded whenever it changes, so that people
and the recall tool can name it.

With the same `keep` in every request the API would clear one more result after each tool round and
break the prompt cache each time. So the border between cleared and kept results stays where it was:
`keep` grows with the later calls, until the remaining size passes the trigger again and moving the
border frees enough.

Two figures follow. `Gauge.tokens` is uncleared: the whole view as stored, which a compaction would
have to read; it triggers clearing and compaction, and a report is converted to it by adding what
the API cleared. `Gauge.seen` is what is left for the model after the clearing: the window guard
compares that.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from conversations.context.policy.gauge import Gauge
from conversations.context.policy.policy import Policy
from conversations.context.steps.compaction import EXCEEDED, OLD_RESULTS
from conversations.context.steps.tool_handling import find_untouchable, list_tools
from conversations.context.tokens.estimate import estimate_block
from conversations.context.translation import gettext_noop, mark_recorded, write_count
from conversations.context.view.edits import Transformation, Trigger
from conversations.context.view.envelope import Envelope
from conversations.context.view.view import Message, View
from conversations.context.view.view_cache import COMPACTIONS_FOLD

_CLEARS = mark_recorded(
    gettext_noop("The API clears %(what)s of every request, about %(count)s tokens: %(why)s")
)
_CLEARS_NONE = mark_recorded(gettext_noop("The API clears no tool results any more"))

EDITING = "context-management-2025-06-27"
COMPACTION = "compact-2026-09-04"
#: Approximate text that the API puts in the place of a cleared result.
CLEARED = "[Old tool result cleared by context management]"


@dataclass(frozen=True, slots=True)
class Clearing:
    """Above `trigger` tokens clear all but `keep` results, if that frees `at_least` tokens."""

    trigger: int = 100_000
    keep: int = 3
    at_least: int = 0
    exclude_tools: tuple[str, ...] = ()

    @property
    def parameters(self) -> dict[str, Any]:
        """The `context_management` of an envelope."""
        edit: dict[str, Any] = {
            "type": "clear_tool_uses_20250919",
            "trigger": {"type": "input_tokens", "value": self.trigger},
            "keep": {"type": "tool_uses", "value": self.keep},
        }
        if self.at_least:
            edit["clear_at_least"] = {"type": "input_tokens", "value": self.at_least}
        if self.exclude_tools:
            edit["exclude_tools"] = list(self.exclude_tools)
        return {"edits": [edit]}


@dataclass(frozen=True, slots=True)
class Cleared:
    """The calls whose results the API will clear, oldest first, and the tokens that frees."""

    ids: tuple[str, ...] = ()
    tokens: int = 0


@dataclass(slots=True)
class _Uses:
    """Calls in order, and the estimated tokens that clearing the result of each frees."""

    calls: list[tuple[str, str]] = field(default_factory=list)
    frees: dict[str, int] = field(default_factory=dict)
    #: Ids of the results that a person restored.
    restored: set[str] = field(default_factory=set)

    def read(self, message: Message) -> None:
        shape = message.shape
        self.calls += [(call.id, call.name) for call in shape.calls]
        for result in shape.results:
            block = message.blocks[result.at]
            empty = {**block.value, "content": CLEARED}
            self.frees[result.id] = block.tokens - estimate_block(empty)
            if block.by == "restore":
                self.restored.add(result.id)

    def behind(self, ids: tuple[str, ...]) -> int:
        """Count the calls made after the last of these."""
        known = set(ids)
        return next(
            (at for at, (call, _) in enumerate(reversed(self.calls)) if call in known),
            len(self.calls),
        )


def predict_cleared(view: View, gauge: Gauge, clearing: Clearing) -> Cleared:
    """Predict what the API will clear of this view, by its own rules."""
    if gauge.tokens <= clearing.trigger:
        return Cleared()
    uses = _learn_uses(view)
    old = uses.calls[: max(0, len(uses.calls) - clearing.keep)]
    gone = tuple(call for call, name in old if name not in clearing.exclude_tools)
    freed = sum(uses.frees.get(call, 0) for call in gone) * gauge.permille // 1000
    return Cleared(gone, freed) if gone and freed >= max(1, clearing.at_least) else Cleared()


def choose_clearing(view: View, gauge: Gauge, policy: Policy) -> tuple[Clearing, Cleared]:
    """Choose the parameters and predict their effect: unchanged, unless more has become due."""
    fresh = Clearing(
        policy.input_token_budget,
        policy.clear_keep_results,
        policy.minimum_gain_tokens,
        _list_spared_tools(view, policy),
    )
    if gauge.tokens <= fresh.trigger:
        return fresh, Cleared()
    due = predict_cleared(view, gauge, fresh)
    held = replace(fresh, keep=_learn_uses(view).behind(view.cleared))
    kept = predict_cleared(view, gauge, held)
    if not kept.ids:
        return fresh, due
    left = gauge.tokens - kept.tokens
    is_due = left > fresh.trigger and due.tokens - kept.tokens >= policy.minimum_gain_tokens
    return (fresh, due) if is_due or left > gauge.room else (held, kept)


def build_expectation(
    view: View, gauge: Gauge, clearing: Clearing, cleared: Cleared
) -> Transformation:
    """Build the record of what the API will clear from now on; the view does not change."""
    count = len(cleared.ids)
    freed = cleared.tokens * 1000 // gauge.permille
    if count:
        why = EXCEEDED % {"number": f"{gauge.tokens:,}", "most": f"{clearing.trigger:,}"}
        what = write_count(*OLD_RESULTS, count)
        note = _CLEARS % {"what": what, "count": f"{cleared.tokens:,}", "why": why}
    else:
        note = _CLEARS_NONE
    trigger = Trigger(gauge.tokens, clearing.trigger, gauge.source, "input_token_budget")
    return Transformation(
        "clearing", trigger, (), view.tokens, max(0, view.tokens - freed), view.size, view.size,
        note, "expected", " ".join(cleared.ids), view_after=view.with_cleared(cleared.ids),
    )  # fmt: skip


def list_expected_ids(view: View) -> tuple[str, ...]:
    """Return the ids of the last prediction that are still in view."""
    frees = _learn_uses(view).frees if view.cleared else {}
    return tuple(call for call in view.cleared if call in frees)


def build_reply_envelope(envelope: Envelope, view: View, clearing: Clearing | None) -> Envelope:
    """Return the envelope of a reply with the parameters for this view and this clearing."""
    betas = [COMPACTION] if has_compaction_block(view) else []
    if clearing is not None:
        envelope = envelope.with_parameter("context_management", clearing.parameters)
        betas.append(EDITING)
    return envelope.with_betas(betas)


def build_compaction_envelope(envelope: Envelope) -> Envelope:
    """Return the envelope of an on-demand compaction; it keeps the prefix of the replies."""
    return envelope.with_parameter("compaction", {"type": "summarize"}).with_betas([COMPACTION])


def has_compaction_block(view: View) -> bool:
    """Return whether the view has a compaction block of the API."""
    return view.fold_cached(COMPACTIONS_FOLD, list[int], _read_blocks) != []


def _read_blocks(found: list[int], message: Message) -> None:
    if message.shape.compactions:
        found.append(message.seq)


def _learn_uses(view: View) -> _Uses:
    return view.fold_cached("tool uses", _Uses, _Uses.read)


def _list_spared_tools(view: View, policy: Policy) -> tuple[str, ...]:
    """List the tools to exclude because one of their results must stay.

    The API can exclude a tool, but not a single result.
    """
    uses = _learn_uses(view)
    ids = find_untouchable(view, policy) | uses.restored
    return tuple(
        sorted(list_tools(policy, "keep") | {name for call, name in uses.calls if call in ids})
    )
