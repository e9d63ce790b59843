"""Run the steps in order before every call; a generator that the caller drives.

`prepare` yields each `Transformation` it proposes (the caller records it and sends None, or sends a
`Veto`), `SummaryWanted` to request a text from the model (the caller sends a `SummaryReply`, or
None when the call failed), `CompactionWanted` to request a compaction by the API, and `CountWanted`
when an estimate is too close to the limit to decide by (the caller sends a number, or None). It
returns what to send. It has no async and no clock, so a test can answer with a string.

After an overflow the caller prepares again with `harder` 1, 2, 3: each time the room shrinks and
the next means is used whatever the thresholds: a summary, then the latest results, then the largest
blocks.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from conversations.context.errors import ContextError, RuleError, WindowError
from conversations.context.policy.cache_lifetime import choose_lifetime
from conversations.context.policy.policy import Policy
from conversations.context.steps import api_compaction, kinds
from conversations.context.steps.adaptive import Plan, plan_reduction
from conversations.context.steps.api_compaction import Compacting
from conversations.context.steps.compaction import compact_results
from conversations.context.steps.image_limits import replace_excess_images
from conversations.context.steps.kinds import RegisteredKind
from conversations.context.steps.open_calls import leave_out_open_calls
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
from conversations.context.steps.repair import repair_view
from conversations.context.steps.summary import Summarising, replace_zone
from conversations.context.steps.summary_zone import find_zone_before
from conversations.context.steps.trim import drop_messages
from conversations.context.steps.working_view import WorkingView, add_choices
from conversations.context.tokens.estimate import estimate_text
from conversations.context.view import rules
from conversations.context.view.cost_decision import FORCED
from conversations.context.view.view import View

__all__ = [
    "CompactionReply",
    "CompactionWanted",
    "CountWanted",
    "EngineRequest",
    "Preparation",
    "Prepared",
    "Reply",
    "Situation",
    "SummaryReply",
    "SummaryWanted",
    "Veto",
    "prepare",
]

#: The rows of the phases whose steps run in the order of the registry.
_PHASES = {
    phase: tuple(row for row in kinds.ROWS if row.phase == phase)
    for phase in ("shape", "reduce", "limit")
}
#: The function of every step, by its name in the registry.
_STEPS = {
    name: kinds.load_step(name) for row in kinds.ROWS for name in (row.step, row.harsher) if name
}
#: One pass of the phase `limit`: the first step of each kind, then both steps of kinds with two.
_LIMITING = [_STEPS[row.step] for row in _PHASES["limit"]] + [
    _STEPS[name] for row in _PHASES["limit"] if row.harsher for name in (row.step, row.harsher)
]
#: Models with a smaller window, in tokens, are refused.
SMALLEST_WINDOW = 16_000


def prepare(view: View, situation: Situation, policy: Policy, *, harder: int = 0) -> Preparation:
    """Reduce the view as the policy says; return what to send. Raises WindowError, RuleError."""
    policy = add_choices(policy, situation)
    working = _Pipeline(view, situation, policy, harder)
    if situation.window < SMALLEST_WINDOW or (harder and policy.name == "off"):
        raise WindowError(working.gauge.tokens, situation.window, situation.model)
    # Rules of the API, not reductions: they hold under every policy. First, because a step may rely
    # on them; a repair also last, because a step may have broken one.
    yield from working.close_turns()
    yield from working.repair()
    yield from working.replace_unaccepted_block()
    # Before a count, a summary and a compaction, whose requests have the same images.
    yield from working.limit_images()
    if working.is_doubtful and not harder:
        yield from working.count()
    yield from working.settle()
    while working.is_doubtful or working.is_over:
        if not (yield from working.count()):
            break
        # The counted figure applies to this call already.
        yield from working.settle()
    if working.is_over:
        raise WindowError(working.gauge.seen, working.room, situation.model)
    yield from working.repair()
    rules.check_rules(working.view)
    clearing, cleared = working.clearing
    view = working.view
    added, unkept = working.written
    lifetime = choose_lifetime(view, added, unkept, situation.rates, situation.pauses)
    return Prepared(view, working.gauge, clearing, cleared.ids, lifetime)


class _Pipeline(WorkingView):
    """The working view with the order of the steps."""

    def settle(self) -> Generator[EngineRequest, Reply, None]:
        """Reduce the view, then drop the thinking that another envelope signed."""
        is_off = self.policy.name == "off"
        if not is_off:
            yield from self.reduce()
        yield from self.expect()
        reduced = self.view
        unbound = drop_unbound_thinking(reduced, self.situation)
        yield from self.propose(unbound)
        if unbound is not None and self.view is reduced:
            # Not a reduction but a rule of the API: without it the request is refused.
            raise RuleError("thinking", "messages", "its signatures are another envelope's")
        if self.view is not reduced and not is_off:
            # Without the thinking, a view that could not be trimmed to its limits may be trimmable.
            yield from self.trim()
            yield from self.expect()

    def close_turns(self) -> Generator[EngineRequest, Reply, None]:
        """Remove calls of the API's own tools that were cut off."""
        try:
            change = leave_out_open_calls(self.view)
        except ContextError:
            return
        yield from self.propose(change)

    def repair(self) -> Generator[EngineRequest, Reply, None]:
        """Repair what the API would refuse."""
        yield from self.propose(repair_view(self.view, self.policy))

    def replace_unaccepted_block(self) -> Generator[EngineRequest, Reply, None]:
        """Replace a compaction block that the model would not accept by its text."""
        words = api_compaction.replace_block_by_text(self.view, self.situation)
        yield from self.propose(words)
        if words is not None and self.view is not words.view_after:
            raise RuleError("compaction", "messages", "this model does not take the block")

    def limit_images(self) -> Generator[EngineRequest, Reply, None]:
        """Replace the images for which a request of this model has no room."""
        window = self.situation.window
        yield from self.propose(replace_excess_images(self.view, window, self.policy))

    def reduce(self) -> Generator[EngineRequest, Reply, None]:
        """Run the steps of the phases in order."""
        for row in _PHASES["shape"]:
            yield from self.run(row)
        at_once = self.policy.compact_above_percent > 0
        if at_once:
            yield from self.reduce_at_once()
        settled = self.view
        for row in _PHASES["reduce"]:
            yield from self.run(row)
        if self.clears and self.gauge.excess:
            # What the API clears is not enough.
            yield from self.propose(compact_results(self.view, self.gauge, self.policy))
        if self.harder > 1:
            rest = compact_results(self.view, self.gauge, self.policy, everything=True)
            yield from self.propose(rest)
        yield from self.trim()
        if at_once and self.view is not settled:
            # Another limit's reduction may have made the low-water mark reachable.
            yield from self.reduce_at_once()

    def run(self, row: RegisteredKind) -> Generator[EngineRequest, Reply, None]:
        """Run the step of one kind, unless the API does that work."""
        if row.name == "compaction" and self.clears:
            return
        if row.name == "summary" and (yield from self.compact()):
            return
        made = _STEPS[row.step](self.view, self.gauge, self.policy)
        yield from self.summarise(made) if row.asks_model else self.propose(made)

    def compact(self) -> Generator[EngineRequest, Reply, bool]:
        """Let the API compact the beginning of the view; return whether no summary is needed."""
        gauge, policy = self.gauge, self.policy
        if not self.compacts or not self.may_summarise:
            return False
        trigger = api_compaction.find_trigger(gauge, policy)
        if trigger is None:
            return False
        end = api_compaction.find_end(self.view, gauge, policy, self.situation.overhead)
        if not end:
            return False
        # The request uses a reply's envelope: thinking signed under another one must go first.
        yield from self.propose(drop_unbound_thinking(self.view, self.situation))
        if drop_unbound_thinking(self.view, self.situation) is None:
            yield from self.summarise(
                api_compaction.compact_prefix(self.view, end, trigger, self.gauge, policy)
            )
        return True

    def trim(self) -> Generator[EngineRequest, Reply, None]:
        """Drop and shorten until the view is within its limits, or no step can reduce it further.

        Reaching one limit may make another one reachable; leaving that to the next call would break
        the prompt cache a second time.
        """
        before = None
        while self.view is not before:
            before = self.view
            for step in _LIMITING:
                yield from self.propose(step(self.view, self.gauge, self.policy))

    def reduce_at_once(self) -> Generator[EngineRequest, Reply, None]:
        """Carry out plans until there is none."""
        before = None
        while self.view is not before:
            before = self.view
            made = plan_reduction(
                before,
                self.gauge,
                self.policy,
                self.situation,
                self.offer if self.may_summarise else None,
            )
            if made is not None:
                yield from self.carry_out(made)

    def carry_out(self, made: Plan) -> Generator[EngineRequest, Reply, None]:
        """Summarise or drop, then compact; after a failed summary the view stays unchanged.

        Then only what the window forces out is dropped without one.
        """
        before = self.view
        zone = find_zone_before(before, self.policy, made.end) if made.end else None
        if zone is not None and made.may_summarise:
            yield from self.summarise(
                replace_zone(
                    before, zone, made.trigger, self.gauge, self.policy, decision=made.decision
                )
            )
            if self.view is before and made.decision.why not in FORCED:
                return
        if zone is not None and self.view is before:
            policy, indexes = self.policy, list(zone.indexes)
            lists_chars, decision = policy.lists_chars, made.decision
            yield from self.propose(
                drop_messages(
                    before, policy, indexes, made.trigger, made.explanation, lists_chars, decision
                )
            )
        yield from self.propose(made.compaction(self.view, self.policy))

    def summarise(self, steps: Summarising | Compacting) -> Generator[EngineRequest, Reply, None]:
        """Pass on the step's requests, unless summaries failed recently; a veto sends it None.

        A summary that would cost more than it saves is not requested.
        """
        if not self.may_summarise:
            return
        reply: Any = None
        while True:
            try:
                wanted = steps.send(reply)
            except StopIteration as stop:
                yield from self.propose(stop.value)
                return
            if isinstance(wanted, SummaryWanted):
                if wanted.effect is not None and not self.pays_for(wanted.effect):
                    return
                reply = yield from self.request_text(wanted)
                continue
            answer = yield wanted
            reply = answer if isinstance(answer, CompactionReply) else None

    def request_text(
        self, wanted: SummaryWanted
    ) -> Generator[EngineRequest, Reply, SummaryReply | None]:
        """Request a text by going on from the last request where that is cheaper.

        If that call fails, on a prompt of its own.
        """
        continued = self.offer.continue_view(self.view, wanted, estimate_text(wanted.text))
        for request in filter(None, (continued, wanted)):
            answer = yield request
            if isinstance(answer, SummaryReply):
                return answer
        return None
