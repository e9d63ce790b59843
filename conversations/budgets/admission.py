"""Admission: whether a call may be made, and how long its answer may be.

It locks the windows of the applicable budgets and has the call checked (`affordability.py`). If an
answer of full length does not fit in a budget or in the cap of the turn, it is shortened, down to
LEAST_OUTPUT, and one web search is offered instead of several, before the call is refused: for the
rest of the turn, because other tools void the thinking that was signed over them, and the prompt
cache. What is left of a limit a minute shortens the answer, too, but not below SHORTEST: the call
waits for the next minute instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from django.db import connection
from django.db.models import Sum
from django.utils import timezone

from conversations.agent.ports import Refused, ReplyAhead, SearchesLimited, Sending
from conversations.agent.prices import LEAST_OUTPUT, PriceList, PriceMissing
from conversations.budgets.affordability import TurnRoom, check_call, is_of_calls, size_call
from conversations.budgets.caps import resolve_turn_caps
from conversations.budgets.holds import find_room
from conversations.budgets.prices import load_price_list
from conversations.budgets.refusals import build_rate_refusal
from conversations.budgets.search_rounds import LEAST_SEARCHES
from conversations.budgets.status import list_statuses
from conversations.budgets.units import MONEY, UNITS, CallSize
from conversations.budgets.windows import Slot, lock_slots
from conversations.context.translation import gettext_noop, mark_recorded
from conversations.context.view import wire
from conversations.context.view.envelope import Envelope, count_searches
from conversations.log.leases import Lease
from conversations.log.settings_version import VERSION, note_settings_version, reading_settings
from conversations.models import ApiResult

_INACTIVE = mark_recorded(gettext_noop("This account is not active any more."))
#: Raw SQL, because it runs before the tools of each round.
_LAST_CALL = f"""
SELECT u.is_active, c.model, c.estimated_tokens, e.text, {VERSION}
FROM conversations_apicall c JOIN conversations_envelope e ON e.digest = c.envelope_id
JOIN conversations_user u ON u.id = %(user)s WHERE c.id = %(call)s"""  # noqa: S608 - our own words
#: Tokens to which what is left of a minute shortens an answer at most.
SHORTEST = 4_096


@dataclass(frozen=True, slots=True)
class Admission:
    """An admitted call: its envelope, and the size to hold in which windows."""

    model: str
    envelope: Envelope
    slots: tuple[Slot, ...]
    size: CallSize
    #: The moment by which the windows and the prices were chosen.
    at: datetime


def admit_call(*, lease: Lease, sending: Sending) -> Admission:
    """Return what to hold for a call, its windows locked; raises Refused if it does not fit, and
    SearchesLimited if it does with fewer searches.
    """
    model, at = str(dict(sending.envelope.parameters)["model"]), timezone.now()
    prices = load_price_list(model, at)
    envelope = sending.envelope
    size = size_call(
        prices,
        sending.estimated_tokens,
        envelope.searches,
        envelope.max_tokens,
        envelope.lifetime,
    )
    turn = _read_turn_room(lease)
    _demand_price(replace(size, output_tokens=LEAST_OUTPUT))
    ahead = None if sending.ahead is None else _size_reply(sending.ahead)
    slots = lock_slots(lease.user_id, at, [one.prices.model for one in (size, ahead) if one])
    full, size = size, fit_call(size, slots, turn, ahead)
    if ahead is not None:
        # The reply comes first: what is left must pay for it after this call.
        statuses = (slot.status for slot in slots if not _is_of_turns(slot))
        check_call(size, statuses, turn, ahead=ahead).demand()
    # `hold_amounts` checks the budgets, once it is known which of them count the turn already.
    check_call(size, (), turn).demand()
    if size.searches < full.searches:
        _refuse_searches(replace(size, searches=full.searches), slots, turn, ahead)
    size = fit_minute(size, slots, at)
    slots = tuple(slot for slot in slots if is_of_calls(slot.budget.rule, size))
    envelope = envelope.with_lifetime(size.lifetime).with_limit(size.output_tokens)
    return Admission(model, envelope, slots, size, at)


@reading_settings()
def demand_next_call(*, lease: Lease, call_id: int) -> None:
    """Raise Refused when the turn can make no further call, so that no tool runs in vain.

    The least that a call like the last one could use is compared; nothing is held yet.
    """
    with connection.cursor() as cursor:
        cursor.execute(_LAST_CALL, {"call": call_id, "user": lease.user_id})
        found = cursor.fetchone()
    # Without it the person was erased with all that is theirs.
    if found is None or not found[0]:
        raise build_inactive_refusal()
    model, tokens, envelope, version = found[1:]
    note_settings_version(version)
    searches = min(count_searches(wire.decode(envelope)), LEAST_SEARCHES)
    size = size_call(load_price_list(model, timezone.now()), tokens, searches)
    _demand_price(size)
    statuses = list_statuses(lease.user_id)
    # The turn was counted with its first call.
    counted = {one.rule.id for one in statuses if UNITS[one.rule.unit].is_once_per_turn}
    check_call(size, statuses, _read_turn_room(lease), counted).demand()


def choose_searches(*, user_id: int, prices: PriceList, tokens: int, wanted: int) -> int:
    """Return how many searches the replies of a turn begin to offer: one where what is left does
    not pay for its first call with those that are wanted.
    """
    turn = TurnRoom(resolve_turn_caps(user_id).micros)
    # A turn that goes on was counted with its first call.
    statuses = (one for one in list_statuses(user_id) if not UNITS[one.rule.unit].is_once_per_turn)
    try:
        verdict = check_call(size_call(prices, tokens, wanted), statuses, turn)
    except PriceMissing:
        return wanted  # the call is refused
    return wanted if verdict.is_allowed else LEAST_SEARCHES


def _refuse_searches(
    size: CallSize, slots: tuple[Slot, ...], turn: TurnRoom, ahead: CallSize | None
) -> None:
    """Raise SearchesLimited, with the words of what does not allow the searches of a call."""
    statuses = (slot.status for slot in slots if not _is_of_turns(slot))
    try:
        check_call(size, statuses, turn, ahead=ahead).demand()
    except Refused as error:
        raise SearchesLimited(error.code, error.text, LEAST_SEARCHES) from error


def _size_reply(ahead: ReplyAhead) -> CallSize:
    """Return the size of the least reply, as pages check it; raises Refused without a price."""
    prices = load_price_list(ahead.model, timezone.now())
    size = size_call(prices, ahead.tokens, min(ahead.searches, LEAST_SEARCHES))
    _demand_price(size)
    return size


def _is_of_turns(slot: Slot) -> bool:
    return UNITS[slot.budget.rule.unit].is_once_per_turn


def build_inactive_refusal() -> Refused:
    return Refused("inactive", _INACTIVE)


def _demand_price(size: CallSize) -> None:
    """Raise Refused if the worst cost of a call is unknown."""
    try:
        _ = size.cost
    except PriceMissing as error:
        raise Refused(error.code, str(error)) from error


def _read_turn_room(lease: Lease) -> TurnRoom:
    limit = resolve_turn_caps(lease.user_id).micros
    if not limit:
        return TurnRoom()
    results = ApiResult.objects.filter(call__turn=lease.turn_id)
    return TurnRoom(limit, results.aggregate(sum=Sum("cost_micros"))["sum"] or 0)


def fit_call(
    size: CallSize, slots: tuple[Slot, ...], turn: TurnRoom, ahead: CallSize | None = None
) -> CallSize:
    """Fit the answer; before a call is refused, a one-hour cache is replaced by a short one, and
    several searches by one.

    What the reply `ahead` needs is left for it.
    """
    least = min(size.output_tokens, LEAST_OUTPUT)
    most = _find_longest(size, slots, turn, ahead)
    if most < least and size.lifetime == "1h":
        size = replace(size, lifetime="5m")
        most = _find_longest(size, slots, turn, ahead)
    if most < least and size.searches > LEAST_SEARCHES:
        size = replace(size, searches=LEAST_SEARCHES)
        most = _find_longest(size, slots, turn, ahead)
    return replace(size, output_tokens=max(least, most))


def fit_minute(size: CallSize, slots: tuple[Slot, ...], now: datetime) -> CallSize:
    """Shorten the answer to what is left of the minute; raises RateLimitReached below SHORTEST."""
    for slot in slots:
        rule, left = slot.budget.rule, slot.status.left
        unit = UNITS[rule.unit]
        # Whether the turn is counted already is known when it is held.
        if not rule.is_rate or unit.is_once_per_turn or not is_of_calls(rule, size):
            continue
        shortest = min(size.output_tokens, SHORTEST)
        if unit.worst(replace(size, output_tokens=shortest)) > left:
            # What the next minute would not allow either is refused at once.
            check_call(size, (one.status for one in slots if not _is_of_turns(one))).demand()
            raise build_rate_refusal(slot.status, now)
        size = replace(size, output_tokens=min(size.output_tokens, unit.fit_output(size, left)))
    return size


def _find_longest(
    size: CallSize, slots: tuple[Slot, ...], turn: TurnRoom, ahead: CallSize | None
) -> int:
    """Return the longest answer, in tokens, with which a call fits in every budget."""
    rooms = {name: find_room(slots, name, size, ahead) for name in UNITS}
    if turn.limit:
        left, room = turn.limit - turn.spent - (ahead.cost if ahead else 0), rooms[MONEY.name]
        rooms[MONEY.name] = left if room is None else min(left, room)
    fits = [UNITS[name].fit_output(size, room) for name, room in rooms.items() if room is not None]
    return min((size.output_tokens, *fits))
