"""The order of steps before every call, as a conversation with the shell.

`prepare` is a generator. It yields each `Transformation` it proposes (the shell records it and
answers None, or vetoes it with a reason) and `SummaryWanted` when it needs the model's words (the
shell answers with a `SummaryReply`, or None when the call failed). It returns what to send. No
async, no clock: a test answers with a string.

After an overflow the shell prepares again with `harder` 1, 2, 3: the room shrinks each time, so
that a summary, then the latest results, then the largest blocks are reduced whatever the
thresholds.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import partial

from conversations.context import edits, rules
from conversations.context.adaptive import Plan, plan
from conversations.context.compaction import compaction
from conversations.context.edits import Transformation
from conversations.context.errors import WindowError
from conversations.context.gauge import Gauge, measure
from conversations.context.ingest import ingest
from conversations.context.policy import Policy
from conversations.context.rebind import rebind
from conversations.context.rounds import rounds
from conversations.context.shrink import shrink
from conversations.context.situation import (
    Preparation,
    Prepared,
    Reply,
    Situation,
    SummaryReply,
    SummaryWanted,
    Veto,
    Wish,
)
from conversations.context.summary import Summarising, replace_zone, summarise
from conversations.context.trim import drop, trim, trim_rounds
from conversations.context.view import View
from conversations.context.zone import zone_before

__all__ = [
    "Preparation",
    "Prepared",
    "Reply",
    "Situation",
    "SummaryReply",
    "SummaryWanted",
    "Veto",
    "Wish",
    "prepare",
]

#: A model with a smaller window than this is not worth preparing for.
SMALLEST_WINDOW = 16_000
#: Percent that each repeated attempt after an overflow takes from the room.
_HARDER = 25


def prepare(view: View, situation: Situation, policy: Policy, *, harder: int = 0) -> Preparation:
    """Reduce the view as the policy says and give what to send; raises WindowError, RuleError."""
    policy = replace(policy, pins=policy.pins | situation.pins) if situation.pins else policy
    desk = _Desk(view, situation, policy, harder)
    if situation.window < SMALLEST_WINDOW or (harder and policy.name == "off"):
        raise WindowError(desk.gauge.tokens, situation.window, situation.model)
    if policy.name != "off":
        yield from desk.reduce()
    reduced = desk.view
    yield from desk.propose(rebind(reduced, situation))
    if desk.view is not reduced and policy.name != "off":
        # Without its thinking a view that could not be trimmed to its limits may be trimmed now.
        yield from desk.trim()
    if desk.gauge.tokens > desk.room:
        raise WindowError(desk.gauge.tokens, desk.room, situation.model)
    rules.check(desk.view)
    return Prepared(desk.view, desk.gauge, desk.view.reduced)


@dataclass
class _Desk:
    """The view being worked on, measured anew after each change."""

    view: View
    situation: Situation
    policy: Policy
    harder: int

    def __post_init__(self) -> None:
        window = self.situation.window
        self.room = window - min(self.policy.window_reserve_tokens, window // 2)
        self.aim = self.room
        self.rejected = self.situation.rejected
        if self.harder:
            # What was refused was not known to be too large: go below it, whatever was measured.
            percent = max(_HARDER, 100 - _HARDER * self.harder)
            self.aim = min(self.room, self.gauge.tokens) * percent // 100

    @property
    def gauge(self) -> Gauge:
        known = self.situation
        return measure(self.view, known.overhead, known.report, known.window, self.aim)

    def reduce(self) -> Generator[Wish, Reply, None]:
        """Take the steps in order."""
        yield from self.propose(ingest(self.view, self.gauge, self.policy))
        at_once = self.policy.compact_above_percent > 0
        if at_once:
            yield from self.reduce_at_once()
        settled = self.view
        if not at_once or self.harder:
            yield from self.propose(compaction(self.view, self.gauge, self.policy))
        yield from self.summarise(rounds(self.view, self.gauge, self.policy))
        if not at_once or self.harder:
            yield from self.summarise(summarise(self.view, self.gauge, self.policy))
        if self.harder > 1:
            step = partial(compaction, everything=True)
            yield from self.propose(step(self.view, self.gauge, self.policy))
        yield from self.trim()
        if at_once and self.view is not settled:
            # What another limit took may have opened the way to the low-water mark.
            yield from self.reduce_at_once()

    def trim(self) -> Generator[Wish, Reply, None]:
        """Drop and shorten until the view is within its limits."""
        for step in (trim, shrink, trim, trim_rounds):
            yield from self.propose(step(self.view, self.gauge, self.policy))

    def reduce_at_once(self) -> Generator[Wish, Reply, None]:
        """Carry out what the plan decides, until it decides nothing more."""
        before = None
        while self.view is not before:
            before = self.view
            made = plan(self.view, self.gauge, self.policy, self.situation)
            if made is not None:
                yield from self.carry_out(made)

    def carry_out(self, made: Plan) -> Generator[Wish, Reply, None]:
        """Compact, then summarise or drop."""
        yield from self.propose(made.compaction(self.view))
        zone = zone_before(self.view, self.policy, made.end) if made.end else None
        if zone is None:
            return
        before = self.view
        if self.policy.compaction_enabled:
            yield from self.summarise(
                replace_zone(
                    self.view, zone, made.trigger, self.gauge, self.policy, decision=made.decision
                )
            )
        if self.view is before:
            words = self.policy.recall_list_chars
            indexes = list(zone.indexes)
            yield from self.propose(
                drop(self.view, indexes, made.trigger, made.said, words, made.decision)
            )

    def summarise(self, steps: Summarising) -> Generator[Wish, Reply, None]:
        """Pass the summary's questions on, unless too many failed; a veto is no answer to them."""
        if self.rejected >= self.policy.summary_breaker:
            return
        reply: SummaryReply | None = None
        while True:
            try:
                wanted = steps.send(reply)
            except StopIteration as stop:
                yield from self.propose(stop.value)
                return
            answer = yield wanted
            reply = answer if isinstance(answer, SummaryReply) else None

    def propose(self, change: Transformation | None) -> Generator[Wish, Reply, None]:
        """Offer a change; unless it is vetoed, the view is what it makes of it."""
        if change is None:
            return
        answer = yield change
        if change.outcome != "applied":
            # One refusal is enough: nothing more is asked of the model this time.
            self.rejected = self.policy.summary_breaker
            return
        if isinstance(answer, Veto):
            yield edits.unapplied(self.view, change.kind, change.trigger, "vetoed", answer.reason)
            return
        self.view = change.made
