"""Forecast of the reductions before the next message of a conversation.

Where the stored figures alone exclude a reduction, the messages are not read. Otherwise the request
is prepared as at the call, but not sent; envelope, tools and prices are those of the last call.
Each state is prepared once: forecasts are kept under all values that they depend on, so none is
ever outdated.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from threading import Lock

from django.utils import timezone

from conversations.agent.prices import PriceList
from conversations.context.policy.policy import Policy
from conversations.context.steps.next_call import NextCall, find_quiet_limit, forecast_message
from conversations.context.steps.protocol import Situation
from conversations.context.view.cost_decision import Rates
from conversations.context.view.view import View
from conversations.log.context_size import ContextFigures
from conversations.log.turn_state import load_state
from conversations.models import ApiModel, Conversation
from conversations.reductions.conversation_settings import choose_rates, load_summary_rates
from conversations.reductions.in_full import apply_in_full_ahead
from conversations.reductions.pins import list_pins
from conversations.reductions.policy import effective_numbers, effective_policy, read_known_numbers
from conversations.turns.call_counts import current_continuation

#: Sizes of system prompt and tools that a forecast is made for where no request has told it: next
#: to nothing, and many tools.
_OVERHEADS = (0, 20_000)
#: More tokens than this after the last call may be tool results that were never sent.
_UNSENT = 2_000
#: Forecasts that a process caches.
_MOST_CACHED = 500


@dataclass(frozen=True, slots=True)
class Known:
    """Values that the page has read already: figures, their sum in tokens, and prices."""

    found: ContextFigures
    tokens: int
    prices: PriceList


def forecast_calls(
    conversation: Conversation, known: Known, ages: Sequence[int | None]
) -> list[NextCall]:
    """Return the forecast for each age of the prompt cache in seconds; raises ContextError.

    None: nothing is in the cache any more.
    """
    tokens, own = known.tokens, read_known_numbers(known.found)
    numbers = apply_in_full_ahead(effective_numbers(conversation, own), conversation)
    if _is_quiet(numbers, known):
        return [NextCall((), tokens, tokens, tokens, full_kept=tokens) for _ in ages]
    policy = apply_in_full_ahead(effective_policy(conversation, model=own), conversation)
    model = ApiModel.objects.get(pk=conversation.model)
    rates, pins = choose_rates(known.prices), list_pins(conversation)
    # The log only grows, so head and tip name its state.
    log = (conversation.public_id, conversation.head, conversation.tip)
    sizes = (model.pk, model.window, model.clears, model.compacts)
    writer = load_summary_rates(timezone.now())
    key = (log, sizes, policy, rates, writer, pins, current_continuation(), tuple(ages))
    found = _cache.find(key)
    if found is None:
        found = _prepare_calls(conversation, model, policy, (rates, writer), pins, ages)
        _cache.put(key, found)
    return list(found)


def _prepare_calls(
    conversation: Conversation,
    model: ApiModel,
    policy: Policy,
    rates: tuple[Rates | None, Rates | None],
    pins: frozenset[str | int],
    ages: Sequence[int | None],
) -> tuple[NextCall, ...]:
    state = load_state(conversation, model.pk)
    situation = Situation(
        model=model.pk,
        window=model.window,
        overhead=state.overhead or 0,
        report=state.report,
        bound_to=state.bound_to,
        # The last request was another model's, which signed the thinking over a prefix of its own.
        binding=state.bound_to if state.called_at else model.pk,
        rejected=state.rejected,
        rates=rates[0],
        summary_rates=rates[1],
        cache_lifetime=state.cached.seconds,
        hour_tokens=state.cached.tokens,
        edited_from=state.edited_from,
        pauses=state.pauses,
        calls=state.calls,
        continuation=current_continuation(),
        rejected_at=state.rejected_at,
        clears=model.clears,
        compacts=model.compacts,
        compacted_by=state.compacted_by,
        pins=pins,
    )
    cold = state.cached.seconds
    known = (
        # After another model's request the cache has nothing of the conversation.
        replace(situation, cache_age=cold if age is None or not state.called_at else age)
        for age in ages
    )
    sizes = _OVERHEADS if state.overhead is None else (state.overhead,)
    return tuple(_forecast(state.view, each, policy, sizes) for each in known)


def _forecast(
    view: View, situation: Situation, policy: Policy, overheads: Sequence[int]
) -> NextCall:
    """Return the forecast for the first overhead; it is certain if the others change nothing."""
    first, *others = (
        forecast_message(view, replace(situation, overhead=overhead), policy)
        for overhead in overheads
    )
    same = (
        other.is_certain and (other.kinds, other.is_refused) == (first.kinds, first.is_refused)
        for other in others
    )
    return replace(first, is_certain=first.is_certain and all(same))


class _Cache:
    """The latest forecasts of this process."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Lock()
        self._found: OrderedDict[Hashable, tuple[NextCall, ...]] = OrderedDict()

    def find(self, key: Hashable) -> tuple[NextCall, ...] | None:
        with self._lock:
            return self._found.get(key)

    def put(self, key: Hashable, calls: tuple[NextCall, ...]) -> None:
        with self._lock:
            self._found[key] = calls
            while len(self._found) > self._most:
                self._found.popitem(last=False)


_cache = _Cache(_MOST_CACHED)


def _is_quiet(policy: Policy, known: Known) -> bool:
    """Return whether the figures exclude a reduction: under all thresholds, all results sent.

    Without a report of the model that is called now, the call is measured by an estimate. The
    thresholds are on all that is stored, also on what the API clears (`steps/api_clearing.py`).
    After a change since the last call the messages tell how much of that is still in the cache.
    """
    found = known.found
    if not found.has_report or found.window is None or found.freed or found.moved > _UNSENT:
        return False
    stored = known.tokens + found.cleared
    return stored <= find_quiet_limit(policy, found.window, choose_rates(known.prices))
