"""The view being worked on: its figures, measured again after each change, and how it is changed.

The figures are those of `policy/gauge.py`; what the API will clear by itself is kept apart
(`steps/api_clearing.py`).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

from conversations.context.policy.gauge import Gauge, Report, is_edited, measure_context
from conversations.context.policy.policy import Policy
from conversations.context.policy.scaling import scale_policy
from conversations.context.steps import api_clearing
from conversations.context.steps.api_clearing import Cleared, Clearing
from conversations.context.steps.protocol import (
    CountWanted,
    EngineRequest,
    Reply,
    Situation,
    SummaryEffect,
    Veto,
)
from conversations.context.steps.summary_call import (
    INSTRUCTION,
    THINKING_ROOM,
    LastRequest,
    SummaryOffer,
)
from conversations.context.view import edits
from conversations.context.view.cache_breakpoints import SECONDS, find_settled
from conversations.context.view.cost_decision import weigh_reduction
from conversations.context.view.edits import Transformation
from conversations.context.view.prefix import count_added
from conversations.context.view.view import View

#: Most counts of a request while it is prepared.
MOST_COUNTS = 3
#: A new summary is requested once the view has this percent of its size at the last rejection.
_GROWN = 125
#: Percent of the room that each further attempt after an overflow removes.
_HARDER = 25


def add_choices(policy: Policy, situation: Situation) -> Policy:
    """Return the policy with people's choices in this conversation: pins, decisions on calls."""
    pins = policy.pins | situation.pins
    return replace(policy, pins=pins, decisions=policy.decisions + situation.decisions)


@dataclass
class WorkingView:
    """A view, its figures, and the policy it is reduced by."""

    view: View
    situation: Situation
    policy: Policy
    harder: int

    def __post_init__(self) -> None:
        #: The view before any change.
        self.stored = self.view
        self.room = self.policy.room(self.situation.window)
        if self.policy.compact_above_percent:
            self.policy = scale_policy(self.policy, self.room, self.situation.overhead)
        policy = self.policy
        self.aim = self.room
        self.rejected = self.situation.rejected
        self.report = self.situation.report
        self.counts = 0
        self.counted: View | None = None
        #: The clearing last chosen, with the view and the figure it was chosen for.
        self._chosen: tuple[View, Gauge, tuple[Clearing, Cleared]] | None = None
        #: Whether the API clears results, and whether it compacts instead of a summary.
        asks = policy.server_side
        self.clears = asks and self.situation.clears and policy.input_token_budget > 0
        self.compacts = asks and self.situation.compacts
        if self.harder:
            # The refused request was larger than its figure, so the new room is below that figure.
            percent = max(_HARDER, 100 - _HARDER * self.harder)
            self.aim = min(self.room, self.gauge.seen) * percent // 100

    @property
    def gauge(self) -> Gauge:
        gauge = self._measured
        return replace(gauge, cleared=self.clearing[1].tokens) if self.clears else gauge

    @property
    def _measured(self) -> Gauge:
        known = self.situation
        return measure_context(self.view, known.overhead, self.report, known.window, self.aim)

    @property
    def written(self) -> tuple[int, int]:
        """Tokens that a request of this view writes to the prompt cache, and those of it that are
        not kept for an hour yet, if the request does not pay for that."""
        gauge, known = self.gauge, self.situation
        if known.is_cold:
            return gauge.tokens, gauge.tokens
        added = count_added(self.stored, self.view, known.edited_from) * gauge.permille // 1000
        added = min(gauge.tokens, added)
        is_changed = is_edited(self.view, known.report)
        return added, max(added, gauge.tokens - (0 if is_changed else known.hour_tokens))

    @property
    def clearing(self) -> tuple[Clearing | None, Cleared]:
        """The clearing parameters for the API, and what it will clear."""
        if not self.clears:
            return None, Cleared()
        gauge, known = self._measured, self._chosen
        # Cached: choosing reads every call of the view, and every step needs the result.
        if known is None or known[0] is not self.view or known[1] != gauge:
            chosen = api_clearing.choose_clearing(self.view, gauge, self.policy)
            known = self._chosen = (self.view, gauge, chosen)
        return known[2]

    @property
    def is_over(self) -> bool:
        return self.gauge.seen > self.room

    @property
    def is_doubtful(self) -> bool:
        """Whether the figure is an estimate so close to the room that its error may decide."""
        gauge = self.gauge
        return gauge.source == "estimated" and abs(gauge.seen - self.room) * 10 <= self.room

    @property
    def may_summarise(self) -> bool:
        """Whether a summary may be requested: after a rejection only once the view has grown.

        After `summary_breaker` rejections in a row none is requested for a while.
        """
        if not self.policy.compaction_enabled or self.rejected >= self.policy.summary_breaker:
            return False
        return self.view.tokens * 100 >= self.situation.rejected_at * _GROWN

    def pays_for(self, effect: SummaryEffect) -> bool:
        """Whether a summary saves more than it costs within the expected calls.

        Also where prices are unknown, and where the room or a price cliff demands a reduction. What
        frees little does not pay just because nothing is in the prompt cache.
        """
        gauge, known = self.gauge, self.situation
        rates = known.rates
        if rates is None or self.harder or gauge.excess or 0 < rates.cliff < gauge.tokens:
            return True
        freed = effect.freed * gauge.permille // 1_000
        again = effect.rewritten * gauge.permille // 1_000
        if known.is_cold and freed < self.policy.minimum_gain_tokens:
            return False
        offer = SummaryOffer(rates, known.summary_rates)
        cost, calls = offer.price(effect.read), known.expected_calls
        return weigh_reduction("pays", freed, again, cost, rates, calls, is_cold=known.is_cold).pays

    @property
    def offer(self) -> SummaryOffer:
        """The prices of a summary, with the last request if the prompt cache has it."""
        known = self.situation
        return SummaryOffer(known.rates, known.summary_rates, self._find_last_request())

    def _find_last_request(self) -> LastRequest | None:
        """Return the last request; None where a model cannot go on from it at the cache's price."""
        gauge, known, before = self.gauge, self.situation, self.stored
        is_kept = known.cache_age is not None and not known.is_cold
        is_same = known.bound_to == known.binding and not is_edited(before, known.report)
        if known.rates is None or not is_kept or not is_same or self.harder or self.clears:
            return None
        length = find_settled(self.view.messages) + 1
        if not length or self.view.messages[:length] != before.messages[:length]:
            return None
        added = count_added(before, self.view) * gauge.permille // 1_000
        tokens = max(0, gauge.tokens - added)
        read, longest = tokens, tokens + INSTRUCTION + self.policy.summary_max_tokens
        if known.hour_tokens and (known.cache_age or 0) >= SECONDS["5m"]:
            read = min(tokens, known.hour_tokens)
        if longest + THINKING_ROOM > known.window or 0 < known.rates.cliff < longest:
            return None
        return LastRequest(length, read, tokens - read)

    def count(self) -> Generator[EngineRequest, Reply, bool]:
        """Request a count, once for each view, at most MOST_COUNTS times; say whether it came."""
        if self.counted is self.view or self.counts >= MOST_COUNTS:
            return False
        self.counts += 1
        self.counted = self.view
        tokens = yield CountWanted(self.view)
        if not isinstance(tokens, int):
            # Counting is not available now.
            self.counts = MOST_COUNTS
            return False
        view, overhead = self.view, self.situation.overhead
        self.report = Report(tokens, view.tokens, overhead, view.edits, "counted")
        return True

    def expect(self) -> Generator[EngineRequest, Reply, None]:
        """Record what the API will clear if that has changed; after a veto it clears nothing."""
        clearing, cleared = self.clearing
        if cleared.ids == api_clearing.list_expected_ids(self.view):
            return
        change = api_clearing.build_expectation(
            self.view, self.gauge, clearing or Clearing(), cleared
        )
        answer = yield change
        if isinstance(answer, Veto):
            self.clears = False
            yield edits.build_unapplied(
                self.view, change.kind, change.trigger, "vetoed", answer.reason
            )
            if not api_clearing.list_expected_ids(self.view):
                return
            # The parameters of the last clearing are not sent any more: no veto can change that.
            change = api_clearing.build_expectation(self.view, self.gauge, Clearing(), Cleared())
            yield change
        self.view = change.view_after

    def propose(self, change: Transformation | None) -> Generator[EngineRequest, Reply, None]:
        """Propose a change; unless it is vetoed, continue with the view it makes."""
        if change is None:
            return
        answer = yield change
        if change.outcome != "applied":
            # After one rejection no further text is requested for this call.
            self.rejected = self.policy.summary_breaker
            return
        if isinstance(answer, Veto):
            yield edits.build_unapplied(
                self.view, change.kind, change.trigger, "vetoed", answer.reason
            )
            return
        self.view = change.view_after
