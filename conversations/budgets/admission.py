"""Admission: whether a call may be made, and how long its answer may be.

The most a call can use is its request, with what the estimate may be too low by, at the dearest
price of an input token, an answer of the full length, and every search of the web that it offers
with what those find. Where that does not fit in a budget or in the cap of the turn, the answer is
made shorter, down to a minimum, before the call is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Sum
from django.utils import timezone

from conversations.agent.ports import Refused, Sending
from conversations.agent.prices import LEAST_OUTPUT, PriceList, PriceMissing
from conversations.budgets import holds
from conversations.budgets.admission_words import over_limit, over_turn
from conversations.budgets.caps import turn_caps
from conversations.budgets.holds import Amounts
from conversations.budgets.prices import price_list
from conversations.budgets.status import standings
from conversations.budgets.windows import Slot, open_slots
from conversations.context.view import wire
from conversations.context.view.envelope import Envelope, count_searches
from conversations.log.leases import Lease
from conversations.models import ApiCall, ApiResult, User

#: What an estimate may be too low by, in percent, where money depends on it.
MARGIN = 25
#: Tokens that the results of one search of the web may add to what is read and billed.
SEARCH_TOKENS = 10_000


@dataclass(frozen=True, slots=True)
class Admission:
    """A call that may be made: its envelope, and what to hold in which windows."""

    model: str
    envelope: Envelope
    slots: tuple[Slot, ...]
    worst: Amounts


def admission(*, lease: Lease, sending: Sending) -> Admission:
    """Find room for the call, its windows locked; raises Refused."""
    model = str(dict(sending.envelope.parameters)["model"])
    prices = price_list(model, timezone.now())
    searches = sending.envelope.searches
    padded = _padded(sending.estimated_tokens) + searches * SEARCH_TOKENS
    cap = _TurnRoom.of(lease.turn_id, lease.user_id)
    _worst(prices, padded, LEAST_OUTPUT, searches)
    slots = open_slots(lease.user_id)
    envelope = _affordable(sending.envelope, padded, prices, slots, cap)
    money = _worst(prices, padded, envelope.max_tokens, searches)
    cap.demand(money)
    return Admission(model, envelope, slots, Amounts(money, padded + envelope.max_tokens))


def demand_next(*, lease: Lease, call_id: int) -> None:
    """Raise Refused when the turn can make no other call, so that no tool runs for nothing.

    What counts is the least that a call like the last one could use; nothing is held yet.
    """
    if not User.objects.filter(pk=lease.user_id, is_active=True).exists():
        raise inactive()
    call = ApiCall.objects.only("model", "estimated_tokens").get(pk=call_id)
    padded = _padded(call.estimated_tokens)
    money = _worst(price_list(call.model, timezone.now()), padded, LEAST_OUTPUT)
    least = Amounts(money, padded + LEAST_OUTPUT, turns=0)
    for standing in standings(lease.user_id):
        amount = least.of(standing.rule.unit)
        if amount > standing.left:
            raise over_limit(standing, amount)
    _TurnRoom.of(lease.turn_id, lease.user_id).demand(money)


def worst_cost(call: ApiCall) -> int:
    """Give the most a recorded call can have cost."""
    prices = price_list(call.model, call.sent_at)
    searches = count_searches(wire.decode(call.envelope.text))
    padded = _padded(call.estimated_tokens) + searches * SEARCH_TOKENS
    return prices.worst(padded, call.max_tokens, searches)


def inactive() -> Refused:
    return Refused("inactive", "This account is not active any more.")


def _padded(tokens: int) -> int:
    return tokens * (100 + MARGIN) // 100


def _worst(prices: PriceList, padded: int, output: int, searches: int = 0) -> int:
    try:
        return prices.worst(padded, output, searches)
    except PriceMissing as error:
        raise Refused(error.code, str(error)) from error


@dataclass(frozen=True, slots=True)
class _TurnRoom:
    """What a turn has cost of what it may cost; a limit of 0 is none."""

    limit: int
    spent: int = 0

    @classmethod
    def of(cls, turn_id: int, user_id: int) -> _TurnRoom:
        limit = turn_caps(user_id).micros
        if not limit:
            return cls(0)
        results = ApiResult.objects.filter(call__turn=turn_id)
        return cls(limit, results.aggregate(sum=Sum("cost_micros"))["sum"] or 0)

    def demand(self, amount: int) -> None:
        if self.limit and self.spent + amount > self.limit:
            raise over_turn(self.limit, self.spent, amount)


def _affordable(
    envelope: Envelope,
    padded: int,
    prices: PriceList,
    slots: tuple[Slot, ...],
    cap: _TurnRoom,
) -> Envelope:
    """Shrink the answer's limit to what there is room for, but not below a minimum."""
    most = envelope.max_tokens
    money, tokens = holds.room(slots, "money"), holds.room(slots, "tokens")
    if cap.limit:
        left = cap.limit - cap.spent
        money = left if money is None else min(money, left)
    searches = envelope.searches
    if money is not None and prices.worst(padded, most, searches) > money:
        most = prices.affordable_output(padded, money, searches)
    if tokens is not None:
        most = min(most, tokens - padded)
    return envelope.with_limit(min(envelope.max_tokens, max(LEAST_OUTPUT, most)))
