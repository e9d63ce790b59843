"""The order of steps before every call, as a conversation with the shell.

`prepare` is a generator. It yields each `Transformation` it proposes (the shell records it and
answers None, or vetoes it with a reason), `SummaryWanted` when it needs the model's words (the
shell answers with a `SummaryReply`, or None when the call failed) and `CountWanted` when an
estimate is too near the room to decide by (a number, or None). It returns what to send. No async,
no clock: a test answers with a string.

After an overflow the shell prepares again with `harder` 1, 2, 3: the room shrinks each time, so
that a summary, then the latest results, then the largest blocks are reduced whatever the
thresholds.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from functools import partial
from typing import Any

from conversations.context.errors import RuleError, WindowError
from conversations.context.policy.policy import Policy
from conversations.context.steps import api_compaction
from conversations.context.steps.adaptive import Plan, plan_reduction
from conversations.context.steps.api_compaction import Compacting
from conversations.context.steps.compaction import compact_results
from conversations.context.steps.ingest import shape_new_results
from conversations.context.steps.protocol import (
    CompactionReply,
    CompactionWanted,
    CountWanted,
    EngineRequest,
    Preparation,
    Prepared,
    Reply,
    Situation,
    SummaryReply,
    SummaryWanted,
    Veto,
)
from conversations.context.steps.rebind import drop_unbound_thinking
from conversations.context.steps.rounds import summarise_rounds
from conversations.context.steps.shrink import shrink_blocks
from conversations.context.steps.summary import Summarising, replace_zone, summarise_middle
from conversations.context.steps.summary_zone import find_zone_before
from conversations.context.steps.trim import drop_exchanges, drop_messages, drop_rounds
from conversations.context.steps.working_view import WorkingView
from conversations.context.view import rules
from conversations.context.view.view import View

__all__ = [
    "CompactionReply",
    "CompactionWanted",
    "CountWanted",
    "Preparation",
    "Prepared",
    "Reply",
    "Situation",
    "SummaryReply",
    "SummaryWanted",
    "Veto",
    "EngineRequest",
    "prepare",
]

#: A model with a smaller window than this is not worth preparing for.
SMALLEST_WINDOW = 16_000


def prepare(view: View, situation: Situation, policy: Policy, *, harder: int = 0) -> Preparation:
    """Reduce the view as the policy says and give what to send; raises WindowError, RuleError."""
    policy = replace(policy, pins=policy.pins | situation.pins) if situation.pins else policy
    desk = _Pipeline(view, situation, policy, harder)
    if situation.window < SMALLEST_WINDOW or (harder and policy.name == "off"):
        raise WindowError(desk.gauge.tokens, situation.window, situation.model)
    yield from desk.put_in_words()
    if desk.is_doubtful and not harder:
        yield from desk.count()
    yield from desk.settle()
    while desk.is_doubtful or desk.is_over:
        if not (yield from desk.count()):
            break
        # What is known better now is acted on now, not with the next call.
        yield from desk.settle()
    if desk.is_over:
        raise WindowError(desk.gauge.seen, desk.room, situation.model)
    rules.check_rules(desk.view)
    asked, cleared = desk.clearing
    return Prepared(desk.view, desk.gauge, asked, cleared.ids)


class _Pipeline(WorkingView):
    """The steps, taken on the desk."""

    def settle(self) -> Generator[EngineRequest, Reply, None]:
        """Reduce, and drop the thinking that another envelope signed."""
        is_off = self.policy.name == "off"
        if not is_off:
            yield from self.reduce()
        yield from self.expect()
        reduced = self.view
        unbound = drop_unbound_thinking(reduced, self.situation)
        yield from self.propose(unbound)
        if unbound is not None and self.view is reduced:
            # Not a reduction but what the API demands: without it nothing can be sent.
            raise RuleError("thinking", "messages", "its signatures are another envelope's")
        if self.view is not reduced and not is_off:
            # Without its thinking a view that could not be trimmed to its limits may be trimmed
            # now.
            yield from self.trim()
            yield from self.expect()

    def put_in_words(self) -> Generator[EngineRequest, Reply, None]:
        """Replace a compaction block that the model would not take by its words."""
        words = api_compaction.replace_block_by_text(self.view, self.situation)
        yield from self.propose(words)
        if words is not None and self.view is not words.made:
            raise RuleError("compaction", "messages", "this model does not take the block")

    def reduce(self) -> Generator[EngineRequest, Reply, None]:
        """Take the steps in order."""
        yield from self.propose(shape_new_results(self.view, self.gauge, self.policy))
        at_once = self.policy.compact_above_percent > 0
        if at_once:
            yield from self.reduce_at_once()
        settled = self.view
        if not self.clears:
            yield from self.propose(compact_results(self.view, self.gauge, self.policy))
        yield from self.summarise(summarise_rounds(self.view, self.gauge, self.policy))
        yield from self.compact()
        if self.clears and self.gauge.excess:
            # What the API clears is not enough.
            yield from self.propose(compact_results(self.view, self.gauge, self.policy))
        if self.harder > 1:
            step = partial(compact_results, everything=True)
            yield from self.propose(step(self.view, self.gauge, self.policy))
        yield from self.trim()
        if at_once and self.view is not settled:
            # What another limit took may have opened the way to the low-water mark.
            yield from self.reduce_at_once()

    def compact(self) -> Generator[EngineRequest, Reply, None]:
        """Let the API compact the beginning of the view; what it cannot take is summarised."""
        gauge, policy = self.gauge, self.policy
        trigger = api_compaction.find_trigger(gauge, policy) if self.compacts else None
        end = 0
        if trigger is not None and self.rejected < policy.summary_breaker:
            end = api_compaction.find_end(self.view, gauge, policy, self.situation.overhead)
        if trigger is None or not end:
            yield from self.summarise(summarise_middle(self.view, gauge, policy))
            return
        # The request has the envelope of a reply: what another one signed must be gone.
        yield from self.propose(drop_unbound_thinking(self.view, self.situation))
        if drop_unbound_thinking(self.view, self.situation) is not None:
            return
        yield from self.summarise(
            api_compaction.compact_prefix(self.view, end, trigger, self.gauge, policy)
        )

    def trim(self) -> Generator[EngineRequest, Reply, None]:
        """Drop and shorten until the view is within its limits, or nothing more can be done.

        What one limit made go may have opened the way to another; left to the next call it would
        break the prompt cache a second time.
        """
        before = None
        while self.view is not before:
            before = self.view
            for step in (drop_exchanges, shrink_blocks, drop_exchanges, drop_rounds):
                yield from self.propose(step(self.view, self.gauge, self.policy))

    def reduce_at_once(self) -> Generator[EngineRequest, Reply, None]:
        """Carry out what the plan decides, until it decides nothing more."""
        before = None
        while self.view is not before:
            before = self.view
            made = plan_reduction(self.view, self.gauge, self.policy, self.situation)
            if made is not None:
                yield from self.carry_out(made)

    def carry_out(self, made: Plan) -> Generator[EngineRequest, Reply, None]:
        """Compact, then summarise or drop."""
        yield from self.propose(made.compaction(self.view))
        zone = find_zone_before(self.view, self.policy, made.end) if made.end else None
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
                drop_messages(self.view, indexes, made.trigger, made.said, words, made.decision)
            )

    def summarise(self, steps: Summarising | Compacting) -> Generator[EngineRequest, Reply, None]:
        """Pass the summary's questions on, unless too many failed; a veto is no answer to them."""
        if self.rejected >= self.policy.summary_breaker:
            return
        reply: Any = None
        while True:
            try:
                wanted = steps.send(reply)
            except StopIteration as stop:
                yield from self.propose(stop.value)
                return
            answer = yield wanted
            reply = answer if isinstance(answer, SummaryReply | CompactionReply) else None
