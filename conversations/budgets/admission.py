"""Admission: whether a call may be made, and how long its answer may be.

The most a call can use is its estimated request plus a margin for the estimate's error, billed at
the dearest price of an input token, an answer of the full length, and every web search that it
offers with the tokens the results may add. Where that does not fit in a budget or in the cap of the
turn, the answer is shortened, down to LEAST_OUTPUT, before the call is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.db.models import Sum
from django.utils import timezone

from conversations.agent.ports import Refused, Sending
from conversations.agent.prices import LEAST_OUTPUT, PriceMissing
from conversations.budgets.caps import resolve_turn_caps
from conversations.budgets.holds import find_room
from conversations.budgets.prices import load_price_list
from conversations.budgets.refusals import build_limit_refusal, build_turn_refusal
from conversations.budgets.status import list_statuses
from conversations.budgets.units import MONEY, UNITS, CallSize
from conversations.budgets.windows import Slot, lock_slots
from conversations.context.view import wire
from conversations.context.view.envelope import Envelope, count_searches
from conversations.log.leases import Lease
from conversations.models import ApiCall, ApiResult, User

#: By how many percent an estimate may be too low, where money depends on it.
MARGIN = 25
#: Tokens that the results of one web search may add to the billed input.
SEARCH_TOKENS = 10_000


@dataclass(frozen=True, slots=True)
class Admission:
    """A call that may be made: its envelope, and the size to hold in which windows."""

    model: str
    envelope: Envelope
    slots: tuple[Slot, ...]
    size: CallSize


def admit_call(*, lease: Lease, sending: Sending) -> Admission:
    """Return what to hold for a call, its windows locked; raises Refused where none fits."""
    model = str(dict(sending.envelope.parameters)["model"])
    prices = load_price_list(model, timezone.now())
    searches = sending.envelope.searches
    padded = _pad_estimate(sending.estimated_tokens) + searches * SEARCH_TOKENS
    cap = _TurnRoom.of(lease.turn_id, lease.user_id)
    size = CallSize(prices, padded, sending.envelope.max_tokens, searches)
    _price_worst_case(replace(size, output_tokens=LEAST_OUTPUT))
    slots = lock_slots(lease.user_id)
    size = _fit_answer(size, slots, cap)
    cap.demand(_price_worst_case(size))
    return Admission(model, sending.envelope.with_limit(size.output_tokens), slots, size)


def demand_next_call(*, lease: Lease, call_id: int) -> None:
    """Raise Refused when the turn can make no other call, so that no tool runs in vain.

    Compared is the least that a call like the last one could use; nothing is held yet.
    """
    if not User.objects.filter(pk=lease.user_id, is_active=True).exists():
        raise build_inactive_refusal()
    call = ApiCall.objects.only("model", "estimated_tokens").get(pk=call_id)
    padded = _pad_estimate(call.estimated_tokens)
    size = CallSize(load_price_list(call.model, timezone.now()), padded, LEAST_OUTPUT)
    cost = _price_worst_case(size)
    for status in list_statuses(lease.user_id):
        unit = UNITS[status.rule.unit]
        # The turn has been counted with its first call.
        amount = 0 if unit.is_once_per_turn else unit.worst(size)
        if amount > status.left:
            raise build_limit_refusal(status, amount)
    _TurnRoom.of(lease.turn_id, lease.user_id).demand(cost)


def compute_worst_cost(call: ApiCall) -> int:
    """Return the most, in micro-dollars, that a recorded call can have cost."""
    prices = load_price_list(call.model, call.sent_at)
    searches = count_searches(wire.decode(call.envelope.text))
    padded = _pad_estimate(call.estimated_tokens) + searches * SEARCH_TOKENS
    return CallSize(prices, padded, call.max_tokens, searches).cost


def build_inactive_refusal() -> Refused:
    return Refused("inactive", "This account is not active any more.")


def _pad_estimate(tokens: int) -> int:
    return tokens * (100 + MARGIN) // 100


def _price_worst_case(size: CallSize) -> int:
    """Return the worst cost of a call in micro-dollars; raises Refused without a price."""
    try:
        return size.cost
    except PriceMissing as error:
        raise Refused(error.code, str(error)) from error


@dataclass(frozen=True, slots=True)
class _TurnRoom:
    """What a turn has cost, and its cap in micro-dollars; a limit of 0 is no cap."""

    limit: int
    spent: int = 0

    @classmethod
    def of(cls, turn_id: int, user_id: int) -> _TurnRoom:
        limit = resolve_turn_caps(user_id).micros
        if not limit:
            return cls(0)
        results = ApiResult.objects.filter(call__turn=turn_id)
        return cls(limit, results.aggregate(sum=Sum("cost_micros"))["sum"] or 0)

    def demand(self, amount: int) -> None:
        if self.limit and self.spent + amount > self.limit:
            raise build_turn_refusal(self.limit, self.spent, amount)


def _fit_answer(size: CallSize, slots: tuple[Slot, ...], cap: _TurnRoom) -> CallSize:
    """Shorten the answer to what every unit has room for, but not below LEAST_OUTPUT."""
    rooms = {name: find_room(slots, name) for name in UNITS}
    if cap.limit:
        left, room = cap.limit - cap.spent, rooms[MONEY.name]
        rooms[MONEY.name] = left if room is None else min(left, room)
    fits = [UNITS[name].fit_output(size, room) for name, room in rooms.items() if room is not None]
    most = max(LEAST_OUTPUT, min(fits, default=size.output_tokens))
    return replace(size, output_tokens=min(size.output_tokens, most))
