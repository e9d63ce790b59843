"""The cost of the next message and the reduction before it, for the composer and the meter.

While the prompt cache is warm there are two forecasts: for now, and for after the cache has
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
from conversations.context.view import wire
from conversations.context.view.cache_breakpoints import SECONDS, Lifetime
from conversations.log.context_size import ContextFigures
from conversations.models import ApiModel, Conversation
from conversations.reductions.foresight import Known, foresee_calls
from conversations.reductions.in_full import find_next_turn

#: One cent in micro-dollars; a price above it is shown.
_CENT = 10_000
#: Tokens assumed for an answer before there is one, and the fewest an answer is priced at.
_USUAL_ANSWER, _LEAST_ANSWER = 500, 100
#: Approximate tokens of a summary.
_SUMMARY = 1_000


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
        return self.action in ("compact", "trim", "rebuild")


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
    def is_full(self) -> bool:
        return self.is_always_full or self.is_full_once


def foresee_next(
    conversation: Conversation, found: ContextFigures, tokens: int
) -> NextMessage | None:
    """Return the outlook of a conversation of `tokens` tokens; None without a basis for one."""
    prices = load_price_list(conversation.model, timezone.now())
    until = _read_cache(found)
    has_cache = [True, False] if until is not None else [False]
    try:
        calls = foresee_calls(conversation, Known(found, tokens, prices), has_cache)
    except (ContextError, ApiModel.DoesNotExist):
        return None
    outlooks = [
        _build_outlook(call, found if is_warm else None, prices, found.written)
        for call, is_warm in zip(calls, has_cache, strict=True)
    ]
    return NextMessage(
        outlooks[0],
        outlooks[1] if until is not None else None,
        until,
        conversation.in_full_always,
        conversation.in_full_turn == find_next_turn(conversation),
    )


def _read_cache(found: ContextFigures) -> datetime | None:
    """Return when what the last call cached expires; None without a cache.

    What an earlier call paid an hour for may be kept longer.
    """
    if found.cached_at is None:
        return None
    kept = SECONDS["1h" if read_usage(wire.decode(found.cached_usage)).cache_write_1h else "5m"]
    until = found.cached_at + timedelta(seconds=kept)
    return until if until > timezone.now() else None


def _build_outlook(
    call: NextCall, warm: ContextFigures | None, prices: PriceList, written: int
) -> Outlook:
    cached = warm.context if warm is not None else 0
    answer = max(_LEAST_ANSWER, written or _USUAL_ANSWER)
    try:
        full = _price(prices, call.tokens, min(cached, call.tokens), answer, call.lifetime)
        reduced = _price(prices, call.tokens_after, min(cached, call.kept), answer, call.lifetime)
        if call.summary_input:
            reduced += prices.cost(Usage(call.summary_input, _SUMMARY, 0, 0, 0))
    except PriceMissing:
        return Outlook(call.action, call.is_certain, None, None, call.tokens_after)
    return Outlook(call.action, call.is_certain, full, reduced, call.tokens_after)


def _price(prices: PriceList, tokens: int, cached: int, answer: int, kept: Lifetime) -> int:
    fresh = tokens - cached
    short, long = (0, fresh) if kept == "1h" else (fresh, 0)
    return prices.cost(Usage(0, answer, cached, short, long))
