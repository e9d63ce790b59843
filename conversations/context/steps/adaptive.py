"""Reduce rarely and deeply: one decision, one break of the prompt cache, down to a low-water mark.

Below the size that the policy promises to keep nothing is removed, unless a price cliff or the room
of the window demands it. Above it a reduction goes deep, but is made only if the expected calls pay
for it (`view/cost_decision.py`), a cold prompt cache and the summary's price included; what does
not fit any more is reduced whatever it costs. Recent messages stay unchanged. Older ones are
compacted, keeping their structure; only what then still does not fit is summarised, or dropped if
there is no summary, or none that pays; all of it stays listed in view for recall. A share of a
large window alone would be the wrong mark: at a million tokens, reading the cached history costs
many times what the conversation adds.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace

from conversations.context.policy.gauge import Gauge
from conversations.context.policy.policy import Policy
from conversations.context.steps.compaction import EXCEEDED, OLD_RESULTS, find_compactable
from conversations.context.steps.protocol import Situation
from conversations.context.steps.removable_units import find_kept
from conversations.context.steps.summary_call import SummaryOffer
from conversations.context.translation import gettext_noop, mark_recorded, write_count
from conversations.context.view.cost_decision import FORCED, Decision, Why, weigh_reduction
from conversations.context.view.edits import Transformation, Trigger, build_transformation
from conversations.context.view.rules import find_cuts
from conversations.context.view.view import Message, View

_COMPACTED = mark_recorded(gettext_noop("Compacted %(what)s: %(why)s"))

#: Percent of the low-water mark that the newest, unchanged messages may fill.
RECENT_PERCENT = 60
#: Only so many of the newest messages are recent, however short they are: a token that stays is
#: paid for on every call, and written again whenever the cache has expired.
RECENT_MESSAGES = 30
#: The low-water mark of a conversation with short messages, in tokens.
_LEAST_MARK = 8_000
#: Margin below a price cliff in percent, since the figure is partly an estimate.
_CLEAR = 4
#: Percent of the room to reduce to if only the room demands a reduction.
_ENOUGH = 60


@dataclass(frozen=True, slots=True)
class Plan:
    """A reduction: messages before index `end` are removed, later ones compacted.

    Compacted are the messages numbered `since` to `until`. With `may_summarise` a summary replaces
    the messages before `end`, else they are dropped.
    """

    trigger: Trigger
    decision: Decision
    end: int
    since: int
    until: int
    may_summarise: bool

    def compaction(self, view: View, policy: Policy) -> Transformation | None:
        """Build the compaction of messages between `since` and `until`; None if none shrinks."""
        ready = find_compactable(view, policy)
        chosen = ready.between(self.since, self.until)
        edits = [one.rewritten.edit for one in chosen if one.rewritten]
        if not edits:
            return None
        what = write_count(*OLD_RESULTS, len(edits))
        note = _COMPACTED % {"what": what, "why": self.explanation}
        change = build_transformation(view, "compaction", self.trigger, edits, note, self.decision)
        return ready.record_applied(change)

    @property
    def explanation(self) -> str:
        trigger = self.trigger
        why = self.decision.explanation
        number, most = f"{trigger.number:,}", f"{trigger.threshold:,}"
        return f"{EXCEEDED % {'number': number, 'most': most}}; {why}"


def plan_reduction(
    view: View, gauge: Gauge, policy: Policy, situation: Situation, offer: SummaryOffer | None
) -> Plan | None:
    """Plan a reduction, by a quick estimate first and then by what can really be freed.

    `offer` is None if no summary may be requested. The decision uses the context before the
    new message, so that it is known before the message is written, unless that message forces a
    reduction.
    """
    whole, measured = view, gauge
    view, gauge = _leave_out_message(view, gauge)
    reason = _find_force(gauge, policy, situation)
    if reason is None and (reason := _find_force(measured, policy, situation)):
        view, gauge = whole, measured
    mark = _find_low_water(view, gauge, policy)
    reason = reason or _find_reason(gauge, policy, situation, mark)
    if reason is None or view.length < 2:
        return None
    calls = _expect_calls(view, situation, mark)
    aim = _Aim(mark, *reason, situation, calls, gauge.permille, offer)
    if aim.why == "room" and not aim.pays_going_deep(view, policy):
        enough = (gauge.room * _ENOUGH // 100 - situation.overhead) * 1000 // gauge.permille
        aim = replace(aim, mark=max(mark, enough))
    if view.tokens - aim.mark < policy.minimum_gain_tokens:
        return None
    if aim.why not in FORCED and not aim.is_promising(view):
        return None
    return _weigh_plan(view, policy, aim)


@dataclass(frozen=True, slots=True)
class _Aim:
    """The mark to reduce to, in estimated tokens, the reason, and the data to weigh it by."""

    mark: int
    why: Why
    trigger: Trigger
    situation: Situation
    calls: int
    permille: int
    offer: SummaryOffer | None

    @property
    def may_summarise(self) -> bool:
        return self.offer is not None

    def wants_summary(self, policy: Policy, replaced: int) -> bool:
        """Whether a summary is to replace so many estimated tokens, if one may be requested.

        Its price hardly depends on them: of few tokens it would cost more than it is worth.
        """
        is_enough = replaced * self.permille // 1000 >= policy.summary_least_tokens
        return policy.compaction_enabled and is_enough

    def price_summary(self, view: View, policy: Policy, replaced: int) -> int:
        """Return about what the summary call costs, in micro-dollars; 0 without one."""
        if self.offer is None or not self.wants_summary(policy, replaced):
            return 0
        return self.offer.price(min(policy.summary_input_chars // 3, view.tokens))

    def weigh(self, freed: int, rewritten: int, summary: int) -> Decision:
        rates, is_cold = self.situation.rates, self.situation.is_cold
        return weigh_reduction(
            self.why, freed, rewritten, summary, rates, self.calls, is_cold=is_cold
        )

    def pays_going_deep(self, view: View, policy: Policy) -> bool:
        """Whether reducing to the mark would pay, if the rest must be rewritten in any case."""
        free, known = view.tokens - self.mark, self.situation
        summary = self.price_summary(view, policy, free)
        return weigh_reduction(self.why, free, 0, summary, known.rates, known.expected_calls).pays

    def is_promising(self, view: View) -> bool:
        """Whether reaching the mark would pay, or there are no prices to weigh it by."""
        hoped = self.weigh(view.tokens - self.mark, self.mark, 0)
        return hoped.pays or not hoped.saved_each


def _weigh_plan(view: View, policy: Policy, aim: _Aim) -> Plan | None:
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
        # If a summary is wanted but not available, only what the window forces out is removed.
        if aim.wants_summary(policy, freed) and not aim.may_summarise and aim.why not in FORCED:
            return None
    replaced = freed
    since = messages[end].seq
    freed += sum(one.rewritten.saved for one in ready.between(since, border) if one.rewritten)
    freed = freed * aim.permille // 1000
    if freed < policy.minimum_gain_tokens:
        return None
    may_summarise = bool(end) and aim.may_summarise and aim.wants_summary(policy, replaced)
    rewritten = max(0, view.tokens * aim.permille // 1000 - freed)
    summary = aim.price_summary(view, policy, replaced) if may_summarise else 0
    decision = aim.weigh(freed, rewritten, summary)
    if aim.why in FORCED and decision.saved_each and not decision.pays:
        # The window forces messages out, but no summary of them that costs more than they save.
        may_summarise, decision = False, aim.weigh(freed, rewritten, 0)
    if not decision.is_justified:
        return None
    return Plan(aim.trigger, decision, end, since, border, may_summarise)


def _find_low_water(view: View, gauge: Gauge, policy: Policy) -> int:
    """Return the low-water mark for the messages, in estimated tokens."""
    newest = view.trail.messages[max(0, view.length - RECENT_MESSAGES) : view.length]
    recent = sum(message.tokens for message in newest) * 100 // RECENT_PERCENT
    wanted = policy.low_water_tokens * 1000 // gauge.permille
    return min(wanted, max(recent, _LEAST_MARK))


def _leave_out_message(view: View, gauge: Gauge) -> tuple[View, Gauge]:
    """Return the view without a prompt that has no answer yet, and its gauge."""
    last = view.trail.messages[view.length - 1]
    if last.kind != "prompt":
        return view, gauge
    tokens = max(0, gauge.tokens - last.tokens * gauge.permille // 1000)
    size = view.size - last.size
    before = replace(view, length=view.length - 1, tokens=view.tokens - last.tokens, size=size)
    return before, replace(gauge, tokens=tokens)


def _find_force(gauge: Gauge, policy: Policy, situation: Situation) -> tuple[Why, Trigger] | None:
    """Return what demands a reduction at any cost: the room, or a price cliff."""
    over = gauge.passes(gauge.room, "window_reserve_tokens") if gauge.excess else None
    if over:
        return "room", over
    rates = situation.rates
    if rates and rates.cliff and not policy.is_in_full:
        over = gauge.passes(rates.cliff * (100 - _CLEAR) // 100, "price_cliff")
        if over:
            return "cliff", over
    return None


def _find_reason(
    gauge: Gauge, policy: Policy, situation: Situation, mark: int
) -> tuple[Why, Trigger] | None:
    """Return the reason to reduce above the promised size: a share of the window, or money."""
    if policy.is_in_full:
        return None
    rates, promise = situation.rates, policy.promise(gauge.window)
    share = gauge.room * policy.compact_above_percent // 100
    over = gauge.passes(max(share, promise), "compact_above_percent")
    if over:
        return "share", over
    if rates is None:
        return None
    low = max(1, mark * gauge.permille // 1000)
    setting = "low_water_tokens" if low >= promise else "keep_below_tokens"
    over = gauge.passes(max(low, promise), setting)
    return ("cold" if situation.is_cold else "pays", over) if over else None


def _find_recent(view: View, room: int) -> int:
    """Return the index of the first recent message: within `room` tokens, or the last message."""
    messages = view.trail.messages
    at, used = view.length, 0
    while at > 1 and used + messages[at - 1].tokens <= room:
        at -= 1
        used += messages[at].tokens
    return min(at, view.length - 1)


def _find_end(
    view: View, policy: Policy, likely: dict[int, int], mark: int, after: int
) -> tuple[int, int]:
    """Find the cut before which messages must go to reach the mark, and the tokens that frees."""
    positions = find_cuts(view)
    stay = find_kept(view, positions, policy)
    messages = view.messages
    words = min((policy.lists_chars + policy.name_list_chars) // 3, mark // 2)
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
    """Tokens of the view before each answer, that is, before each call made."""

    tokens: int = 0
    before: list[int] = field(default_factory=list)

    def read(self, message: Message) -> None:
        if message.kind == "answer":
            self.before.append(self.tokens)
        self.tokens += message.tokens


def _expect_calls(view: View, situation: Situation, mark: int) -> int:
    """Return the number of calls for which a reduction would save: those before the next one.

    If a conversation grows evenly, the cheapest rhythm is to reduce when it is paid back within
    half of the calls since the context was at the mark; more often, rewriting costs more than the
    reads that it saves.
    """
    answers = view.fold_cached("answers", _Answers, _Answers.read)
    above = len(answers.before) - bisect_right(answers.before, mark)
    return min(situation.expected_calls, above // 2)
