"""The cost of the next message and the reduction before it, for the composer and the meter.

While something is in the prompt cache there are two forecasts: for now, and for after that has
expired. The price is that of the first call of the turn, with an answer as long as the last one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from conversations.agent.prices import PriceList, PriceMissing
from conversations.agent.usage import Usage, read_usage
from conversations.budgets.prices import load_price_list
from conversations.context.errors import ContextError
from conversations.context.steps.next_call import Action, NextCall
from conversations.context.steps.summary_call import INSTRUCTION, THOUGHT, WRITTEN
from conversations.context.view import wire
from conversations.context.view.cache_breakpoints import SECONDS, Lifetime
from conversations.log.context_size import ContextFigures
from conversations.models import ApiModel, Conversation
from conversations.reductions.conversation_settings import load_summary_prices
from conversations.reductions.in_full import find_next_turn
from conversations.reductions.next_call_forecast import Known, forecast_calls
from conversations.rendering.numbers import cents

#: One cent in micro-dollars; a price above it is shown.
_CENT = 10_000
#: Tokens assumed for an answer before there is one, and the fewest an answer is priced at.
_USUAL_ANSWER, _LEAST_ANSWER = 500, 100


@dataclass(frozen=True, slots=True)
class Outlook:
    """The reduction before the next message, and prices in micro-dollars, None where unknown.

    `reduced` is the price with that reduction, `full` the price without it.
    """

    action: Action
    is_certain: bool
    full: int | None
    reduced: int | None
    #: Estimated tokens of the request, after the reduction.
    tokens: int = 0

    @property
    def is_dear(self) -> bool:
        """Whether the next message costs more than a cent."""
        return (self.reduced or 0) > _CENT

    @property
    def is_reduced(self) -> bool:
        return self.action in ("compact", "trim", "summarise")

    @property
    def has_two_prices(self) -> bool:
        """Whether the reduction changes the price as it is shown, in whole cents."""
        return self.is_reduced and cents(self.reduced or 0) != cents(self.full or 0)


@dataclass(frozen=True, slots=True)
class NextMessage:
    """The outlook now and, while the prompt cache is warm, the one after `until`."""

    now: Outlook
    later: Outlook | None
    until: datetime | None
    is_always_full: bool
    is_full_once: bool

    @property
    def left(self) -> int:
        """Seconds until the cache has expired."""
        return int((self.until - timezone.now()).total_seconds()) if self.until else 0

    @property
    def is_later_told(self) -> bool:
        """Whether the one after a pause is dear and, as it is shown, another than the one now."""
        if self.later is None or not self.later.is_dear:
            return False
        is_same_price = cents(self.later.reduced or 0) == cents(self.now.reduced or 0)
        return not is_same_price or self.later.action != self.now.action

    @property
    def is_full(self) -> bool:
        return self.is_always_full or self.is_full_once


def forecast_next(
    conversation: Conversation, found: ContextFigures, tokens: int
) -> NextMessage | None:
    """Return the outlook of a conversation of `tokens` tokens; None without a basis for one."""
    prices = load_price_list(conversation.model, timezone.now())
    cached = _list_cached(found)
    until = cached[0].until if cached else None
    stages = [*cached, _COLD][:2]
    ages = [stage.age for stage in stages]
    try:
        calls = forecast_calls(conversation, Known(found, tokens, prices), ages)
    except (ContextError, ApiModel.DoesNotExist):
        return None
    outlooks = [
        _build_outlook(call, stage.tokens, prices, found.written)
        for call, stage in zip(calls, stages, strict=True)
    ]
    return NextMessage(
        outlooks[0],
        outlooks[1] if until is not None else None,
        until,
        conversation.in_full_always,
        conversation.in_full_turn == find_next_turn(conversation),
    )


@dataclass(frozen=True, slots=True)
class _CacheStage:
    """The tokens that the API caches until a time, and the cache age to forecast a call by."""

    tokens: int
    age: int | None
    until: datetime | None


#: Nothing is cached.
_COLD = _CacheStage(0, None, None)


def _list_cached(found: ContextFigures) -> list[_CacheStage]:
    """Return what the API caches: the last request, and then what an hour was paid for before."""
    if found.cached_at is None:
        return []
    is_long = read_usage(wire.decode(found.cached_usage)).cache_write_1h > 0
    own = found.cached_at + timedelta(seconds=SECONDS["1h" if is_long else "5m"])
    cached = [_CacheStage(found.context, 0, own)]
    if found.hour_at is not None:
        until = found.hour_at + timedelta(seconds=SECONDS["1h"])
        cached += [_CacheStage(found.hour_tokens, SECONDS["5m"], until)] if until > own else []
    return [one for one in cached if one.until is not None and one.until > timezone.now()]


def _build_outlook(call: NextCall, cached: int, prices: PriceList, written: int) -> Outlook:
    answer = max(_LEAST_ANSWER, written or _USUAL_ANSWER)
    try:
        full = _price(prices, call.tokens, min(cached, call.full_kept), answer, call.lifetime)
        reduced = _price(prices, call.tokens_after, min(cached, call.kept), answer, call.lifetime)
        reduced += price_summary(call, prices)
    except PriceMissing:
        return Outlook(call.action, call.is_certain, None, None, call.tokens_after)
    return Outlook(call.action, call.is_certain, full, reduced, call.tokens_after)


def price_summary(call: NextCall, prices: PriceList) -> int:
    """Return the price of the text that the model writes before the call."""
    cost = 0
    if call.summary_input:
        writer = load_summary_prices(timezone.now()) or prices
        cost += writer.cost(Usage(call.summary_input, WRITTEN, 0, 0, 0))
    if call.summary_cached:
        written = WRITTEN + THOUGHT
        cost += prices.cost(Usage(0, written, call.summary_cached, INSTRUCTION, 0))
    if call.compaction_input:
        cost += prices.cost(Usage(call.compaction_input, WRITTEN, 0, 0, 0))
    return cost


def _price(prices: PriceList, tokens: int, cached: int, answer: int, kept: Lifetime) -> int:
    fresh = tokens - cached
    short, long = (0, fresh) if kept == "1h" else (fresh, 0)
    return prices.cost(Usage(0, answer, cached, short, long))
