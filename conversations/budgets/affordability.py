"""Whether a call is affordable: how much it needs at most, and whether what is left allows it.

All callers use one function: pages before a message is written, admission before a call is made,
the agent loop before tools run whose results no call could follow, and the hold itself. It reads
and locks nothing; callers pass the statuses of the budgets, admission those of locked windows. A
limit a minute is checked by its whole minute, as a call can wait for the next: only what fits in no
minute is refused.

The most a call can use is the sum of: its estimated request plus a margin for the estimate's error,
billed at the highest price of an input token; its answer; and every web search that it offers, with
what the results may add and the round that reads all of it again (`search_rounds.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from conversations.agent.prices import LEAST_OUTPUT, PriceList
from conversations.budgets.effective import BudgetStatus, Rule
from conversations.budgets.refusals import build_limit_refusal, build_turn_refusal
from conversations.budgets.units import UNITS, CallSize
from conversations.context.view.cache_breakpoints import Lifetime

#: Assumed error of an estimate, in percent, where money depends on it.
MARGIN = 25


@dataclass(frozen=True, slots=True)
class TurnRoom:
    """What a turn has cost, and its cap in micro-dollars; a limit of 0 means no cap."""

    limit: int = 0
    spent: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """Budgets that do not allow a call, with what it needs of each; its turn if over the cap."""

    refused_by: tuple[tuple[BudgetStatus, int], ...]
    turn: TurnRoom | None
    cost: int

    @property
    def is_allowed(self) -> bool:
        return not self.refused_by and self.turn is None

    @property
    def rule_ids(self) -> frozenset[int]:
        """The budgets that do not allow the call."""
        return frozenset(status.rule.id for status, _ in self.refused_by)

    def demand(self) -> None:
        """Raise Refused, with the first reason in words, unless the call is allowed."""
        for status, amount in self.refused_by:
            raise build_limit_refusal(status, amount)
        if self.turn is not None:
            raise build_turn_refusal(self.turn.limit, self.turn.spent, self.cost)


def size_call(
    prices: PriceList,
    tokens: int,
    searches: int = 0,
    output: int = LEAST_OUTPUT,
    lifetime: Lifetime = "5m",
) -> CallSize:
    """Return the most that a call with an estimate of `tokens` can use."""
    return CallSize(prices, pad_estimate(tokens), output, searches, lifetime)


def pad_estimate(tokens: int) -> int:
    """Return the most input that a request with an estimate of `tokens` can have."""
    return tokens * (100 + MARGIN) // 100


def find_amount(size: CallSize, rule: Rule, counted: Collection[int] = ()) -> int:
    """Return what a call needs of a budget; nothing if it is of another model or counted.

    `counted` are the ids of the budgets that count its turn already. Raises PriceMissing.
    """
    if not rule.counts_model(size.prices.model):
        return 0
    return 0 if rule.id in counted else UNITS[rule.unit].worst(size)


def check_call(
    size: CallSize,
    statuses: Iterable[BudgetStatus],
    turn: TurnRoom | None = None,
    counted: Collection[int] = (),
    ahead: CallSize | None = None,
) -> Verdict:
    """Check whether budgets and the turn's cap allow a call of this size, and after it a reply of
    the size `ahead`, of the same turn; raises PriceMissing.
    """
    amounts = (
        (
            status,
            find_amount(size, status.rule, counted) + find_later_amount(ahead, status.rule),
        )
        for status in statuses
        if is_of_calls(status.rule, size, ahead)
    )
    refused_by = tuple((status, amount) for status, amount in amounts if amount > status.room)
    if turn is None or not turn.limit:
        return Verdict(refused_by, None, 0)
    cost = size.cost + (ahead.cost if ahead else 0)
    return Verdict(refused_by, turn if turn.spent + cost > turn.limit else None, cost)


def find_later_amount(ahead: CallSize | None, rule: Rule) -> int:
    """Return what the reply ahead needs of a budget; its turn is counted once, and it can wait."""
    unit = UNITS[rule.unit]
    is_free = ahead is None or unit.is_once_per_turn or rule.is_rate or not is_of_calls(rule, ahead)
    return 0 if ahead is None or is_free else unit.worst(ahead)


def is_of_calls(rule: Rule, *sizes: CallSize | None) -> bool:
    """Return whether one of these calls counts in a budget, by its model."""
    return any(size is not None and rule.counts_model(size.prices.model) for size in sizes)
