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
from dataclasses import dataclass
from functools import partial

from conversations.context import edits, rules
from conversations.context.compaction import compaction
from conversations.context.edits import Transformation
from conversations.context.errors import WindowError
from conversations.context.gauge import Gauge, measure
from conversations.context.ingest import ingest
from conversations.context.policy import Policy
from conversations.context.rebind import rebind
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
from conversations.context.summary import summarise
from conversations.context.trim import trim, trim_rounds
from conversations.context.view import View

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
        for step in (ingest, compaction):
            yield from self.propose(step(self.view, self.gauge, self.policy))
        if self.situation.rejected < self.policy.summary_breaker:
            yield from self.summarise()
        if self.harder > 1:
            step = partial(compaction, everything=True)
            yield from self.propose(step(self.view, self.gauge, self.policy))
        yield from self.trim()

    def trim(self) -> Generator[Wish, Reply, None]:
        """Drop and shorten until the view is within its limits."""
        for step in (trim, shrink, trim, trim_rounds):
            yield from self.propose(step(self.view, self.gauge, self.policy))

    def summarise(self) -> Generator[Wish, Reply, None]:
        """Pass the summary's questions on; a veto is no answer to them."""
        steps = summarise(self.view, self.gauge, self.policy)
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
            return
        if isinstance(answer, Veto):
            yield edits.unapplied(self.view, change.kind, change.trigger, "vetoed", answer.reason)
            return
        self.view = edits.apply(self.view, change.kind, change.edits)
