"""Reduce rarely and a lot: one decision, one break of the prompt cache, down to a low-water mark.

Above a share of the window or a price cliff the context must be reduced; below that it is reduced
when nothing is left in the prompt cache, or when the calls to come pay for rewriting it
(`view/cost_decision.py`). Recent messages stay as they are. Older ones are compacted, keeping their
structure; only what then still does not fit is summarised, or dropped where there is no summary;
all of it stays listed in view for recall. A share of a large window alone would be the wrong mark:
at a million tokens, reading the cached history costs many times what the conversation adds.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from conversations.context.policy.gauge import Gauge
from conversations.context.policy.policy import Policy
from conversations.context.steps.compaction import Compactable, find_compactable
from conversations.context.steps.protocol import Situation
from conversations.context.steps.removable_units import find_kept
from conversations.context.view.cost_decision import Decision, Why, weigh_reduction
from conversations.context.view.edits import Transformation, Trigger, build_transformation
from conversations.context.view.rules import find_cuts
from conversations.context.view.view import Message, View

#: Percent of the low-water mark that the newest, unchanged messages may fill.
RECENT_PERCENT = 60
#: Messages before the newest so many are not recent, however short they are: a token that stays is
#: paid for on every call, and written again whenever the cache has expired.
RECENT_MESSAGES = 30
#: The low-water mark of a conversation of short messages, in tokens.
_LEAST_MARK = 8_000
#: Margin below a price cliff in percent, since the figure is partly an estimate.
_CLEAR = 4
#: Tokens a summary call writes, about.
_WRITTEN = 1_000


@dataclass(frozen=True, slots=True)
class Plan:
    """A reduction: what is old ends at index `after`; what of that is replaced ends at `end`."""

    trigger: Trigger
    decision: Decision
    ready: Compactable
    after: int
    end: int

    def compaction(self, view: View) -> Transformation | None:
        """Build the compaction of what is neither recent nor to be replaced; None for nothing."""
        messages = view.messages
        first, last = messages[self.end].seq, messages[self.after].seq
        edits = [one.edit for one in self.ready.between(first, last) if one.edit]
        if not edits:
            return None
        what = f"{len(edits)} old tool result{'s' if len(edits) > 1 else ''}"
        note = f"Compacted {what}: {self.said}"
        change = build_transformation(view, "compaction", self.trigger, edits, note, self.decision)
        return self.ready.record_applied(change)

    @property
    def said(self) -> str:
        trigger = self.trigger
        return (
            f"input tokens {trigger.number:,} exceeded {trigger.threshold:,}; {self.decision.said}"
        )


def plan_reduction(view: View, gauge: Gauge, policy: Policy, situation: Situation) -> Plan | None:
    """Plan a reduction, by a quick estimate first and then by what can really be freed."""
    mark = _find_low_water(view, gauge, policy)
    reason = _find_reason(gauge, policy, situation, mark)
    calls = _count_calls_above(view, mark)
    if reason is None or view.length < 2 or view.tokens - mark < policy.minimum_gain_tokens:
        return None
    why, trigger = reason
    hoped = weigh_reduction(why, view.tokens - mark, mark, (0, 0), situation.rates, calls)
    if why == "pays" and not hoped.pays:
        return None
    return _weigh_plan(view, policy, situation, _Aim(mark, why, trigger, calls, gauge.permille))


@dataclass(frozen=True, slots=True)
class _Aim:
    """The mark to reduce to, in estimated tokens, and why."""

    mark: int
    why: Why
    trigger: Trigger
    calls: int
    permille: int


def _weigh_plan(view: View, policy: Policy, situation: Situation, aim: _Aim) -> Plan | None:
    ready = find_compactable(view, policy)
    after = _find_recent(view, aim.mark * RECENT_PERCENT // 100)
    messages = view.trail.messages
    border = messages[after].seq
    likely: dict[int, int] = {}
    for one in ready.between(0, border):
        freed = one.likely(policy.tool_result_retention_chars)
        likely[one.seq] = likely.get(one.seq, 0) + freed
    end = freed = 0
    if view.tokens - sum(likely.values()) > aim.mark:
        end, freed = _find_end(view, policy, likely, aim.mark, after)
    freed += sum(one.saved for one in ready.between(messages[end].seq, border) if one.edit)
    freed = freed * aim.permille // 1000
    if freed < policy.minimum_gain_tokens:
        return None
    asks = end and policy.compaction_enabled
    read = min(policy.summary_input_chars // 3, view.tokens) if asks else 0
    # With a cold cache nothing is rewritten that would not be written anyway.
    rewritten = 0 if aim.why == "cold" else view.tokens * aim.permille // 1000 - freed
    call = (read, _WRITTEN if asks else 0)
    decision = weigh_reduction(aim.why, freed, max(0, rewritten), call, situation.rates, aim.calls)
    if aim.why == "pays" and not decision.pays:
        return None
    return Plan(aim.trigger, decision, ready, after, end)


def _find_low_water(view: View, gauge: Gauge, policy: Policy) -> int:
    """Return the low-water mark for the messages, in estimated tokens."""
    newest = view.trail.messages[max(0, view.length - RECENT_MESSAGES) : view.length]
    recent = sum(message.tokens for message in newest) * 100 // RECENT_PERCENT
    wanted = policy.low_water_tokens * 1000 // gauge.permille
    return min(wanted, max(recent, _LEAST_MARK))


def _find_reason(
    gauge: Gauge, policy: Policy, situation: Situation, mark: int
) -> tuple[Why, Trigger] | None:
    rates = situation.rates
    share = gauge.room * policy.compact_above_percent // 100
    over = gauge.passes(share, "compact_above_percent")
    if over:
        return "share", over
    if rates and rates.cliff:
        over = gauge.passes(rates.cliff * (100 - _CLEAR) // 100, "price_cliff")
        if over:
            return "cliff", over
    if rates is None and not situation.is_cold:
        return None
    low = mark * gauge.permille // 1000
    over = gauge.passes(max(low, 1), "low_water_tokens")
    return ("cold" if situation.is_cold else "pays", over) if over else None


def _find_recent(view: View, room: int) -> int:
    """Return the index of the first message that is recent: within the room, or the last."""
    messages = view.trail.messages
    at, used = view.length, 0
    while at > 1 and used + messages[at - 1].tokens <= room:
        at -= 1
        used += messages[at].tokens
    return min(at, view.length - 1)


def _find_end(
    view: View, policy: Policy, likely: dict[int, int], mark: int, after: int
) -> tuple[int, int]:
    """Find the cut up to which messages must go to reach the mark, and the tokens that frees."""
    positions = find_cuts(view)
    stay = find_kept(view, positions, policy)
    messages = view.messages
    words = min(policy.recall_list_chars // 2, mark // 3)
    left = view.tokens - sum(likely.values()) + words
    end = start = gone = freed = 0
    for position in positions[1:-1]:
        if left <= mark or position > after:
            break
        for at in range(max(start, 1), position):
            if at not in stay:
                left -= messages[at].tokens - likely.get(messages[at].seq, 0)
                freed += messages[at].tokens
                gone += 1
        start = end = position
    return (end, max(0, freed - words)) if gone > 1 else (0, 0)


@dataclass(slots=True)
class _Answers:
    """Tokens of the view before each answer; each answer is a call that was made."""

    tokens: int = 0
    before: list[int] = field(default_factory=list)

    def read(self, message: Message) -> None:
        if message.kind == "answer":
            self.before.append(self.tokens)
        self.tokens += message.tokens


def _count_calls_above(view: View, mark: int) -> int:
    """Count the calls made with more than the mark in context."""
    answers = view.learn("answers", _Answers, _Answers.read)
    return len(answers.before) - bisect_right(answers.before, mark)
