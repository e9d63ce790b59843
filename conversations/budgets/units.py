"""The registry of budget units: one row for each thing a budget can count.

Everything that depends on the unit is in its row: what a call may use of it at most, what a call
has used, how much answer fits in the room that is left, how amounts are shown, read and written,
and the text of a refusal. Other modules look the row up by the name in `Budget.unit`, so none of
them compares that name. A row without one of its parts, and a unit of the model without a row, are
errors at import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import partial, reduce
from operator import add

from django.core.exceptions import ImproperlyConfigured
from django.db.models import F, Q
from django.db.models.functions import Coalesce
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop, ngettext

from conversations.agent.prices import PriceList
from conversations.agent.usage import Usage
from conversations.budgets.amounts import format_decimal, parse_count, parse_dollars
from conversations.budgets.search_rounds import count_new, count_reread
from conversations.context.translation import mark_recorded
from conversations.context.view.cache_breakpoints import Lifetime
from conversations.models.budgets import BudgetUnit
from conversations.rendering.numbers import dollars


@dataclass(frozen=True, slots=True)
class CallSize:
    """The most a call can use; `request_tokens` include the margin of the estimate."""

    prices: PriceList
    request_tokens: int
    output_tokens: int
    searches: int = 0
    lifetime: Lifetime = "5m"

    @property
    def new_tokens(self) -> int:
        """The request, the results of its searches, and what no cache keeps of their rounds."""
        return count_new(self.request_tokens, self.searches)

    @property
    def reread_tokens(self) -> int:
        """The input that the rounds after searches read from the cache."""
        return count_reread(self.request_tokens, self.searches)

    @property
    def input_tokens(self) -> int:
        """All input, at whatever price."""
        return self.new_tokens + self.reread_tokens

    @property
    def cost(self) -> int:
        """The worst cost in micro-dollars; raises PriceMissing."""
        return self.prices.worst(
            self.new_tokens,
            self.output_tokens,
            self.searches,
            self.lifetime,
            reread=self.reread_tokens,
        )


@dataclass(frozen=True, slots=True)
class CallUse:
    """What a call has used: its cost in micro-dollars, and its billed tokens."""

    cost: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class Unit:
    """What a budget can count. No part has a default, so a row that lacks one is a TypeError."""

    #: The value of `Budget.unit`.
    name: str
    #: The most that a call of a size can use.
    worst: Callable[[CallSize], int]
    #: What a call has used.
    used: Callable[[CallUse], int]
    #: The longest answer, in tokens, with which a call of a size fits in the room.
    fit_output: Callable[[CallSize, int], int]
    #: Whether only the first paid call of a turn counts.
    is_once_per_turn: bool
    #: Whether a call that the API refused or that failed counts, too, though nothing is billed.
    counts_failed: bool
    #: The condition on a settling or releasing LedgerEntry that differs from its call's result.
    wrong_settlement: Q
    #: Formats an amount for people, rounded.
    show: Callable[[int], str]
    #: Parses an amount as people write it; raises Unreadable.
    read: Callable[[str], int]
    #: Decimal digits of an amount as it is read and written: 6 where micro-dollars are stored.
    digits: int
    #: The form's word for the amount.
    measure: Promise
    #: The sentence that refuses a call; its places are `budget`, `limit`, `whose`, `used` and
    #: `amount`.
    refusal: str


def _fit_cost(size: CallSize, room: int) -> int:
    if size.cost <= room:
        return size.output_tokens
    return size.prices.affordable_output(
        size.new_tokens, room, size.searches, size.lifetime, reread=size.reread_tokens
    )


def _show_tokens(amount: int) -> str:
    return _("%(number)s tokens") % {"number": f"{amount:,}"}


def _show_turns(amount: int) -> str:
    return ngettext("%(number)s turn", "%(number)s turns", amount) % {"number": f"{amount:,}"}


def _show_requests(amount: int) -> str:
    text = ngettext("%(number)s request", "%(number)s requests", amount)
    return text % {"number": f"{amount:,}"}


_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_BILLED_TOKENS = reduce(add, (Coalesce(f"call__result__{name}", 0) for name in _COUNTS))
#: The counts of a lost call, and of an answer without usage, are unknown.
_UNKNOWN_TOKENS = Q(call__result__input_tokens=None) & ~Q(call__result__cost_basis="none")

_USED_UP = mark_recorded(
    gettext_noop(
        "%(budget)s of %(limit)s (%(whose)s) is used up: %(used)s were made or are on their way."
    )
)

MONEY = Unit(
    name="money",
    worst=lambda size: size.cost,
    used=lambda use: use.cost,
    fit_output=_fit_cost,
    is_once_per_turn=False,
    counts_failed=False,
    wrong_settlement=~Q(amount=F("call__result__cost_micros")),
    show=dollars,
    read=parse_dollars,
    digits=6,
    measure=gettext_lazy("dollars, such as 2.50"),
    refusal=mark_recorded(
        gettext_noop(
            "%(budget)s of %(limit)s (%(whose)s) does not allow another call: %(used)s is spent or"
            " held, and this call may cost up to %(amount)s."
        )
    ),
)
TOKENS = Unit(
    name="tokens",
    worst=lambda size: size.input_tokens + size.output_tokens,
    used=lambda use: use.usage.total,
    fit_output=lambda size, room: min(size.output_tokens, room - size.input_tokens),
    is_once_per_turn=False,
    counts_failed=False,
    wrong_settlement=~_UNKNOWN_TOKENS & ~Q(amount=_BILLED_TOKENS),
    show=_show_tokens,
    read=partial(parse_count, noun="tokens"),
    digits=0,
    measure=gettext_lazy("tokens"),
    refusal=mark_recorded(
        gettext_noop(
            "%(budget)s of %(limit)s (%(whose)s) does not allow another call: %(used)s are spent or"
            " held, and this call may use up to %(amount)s."
        )
    ),
)
TURNS = Unit(
    name="turns",
    worst=lambda _size: 1,
    used=lambda _use: 1,
    fit_output=lambda size, _room: size.output_tokens,
    is_once_per_turn=True,
    counts_failed=False,
    wrong_settlement=Q(amount__gt=1),
    show=_show_turns,
    read=partial(parse_count, noun="turns"),
    digits=0,
    measure=gettext_lazy("turns"),
    refusal=_USED_UP,
)
REQUESTS = Unit(
    name="requests",
    worst=lambda _size: 1,
    used=lambda _use: 1,
    fit_output=lambda size, _room: size.output_tokens,
    is_once_per_turn=False,
    counts_failed=True,
    wrong_settlement=~Q(amount=1),
    show=_show_requests,
    read=partial(parse_count, noun="requests"),
    digits=0,
    measure=gettext_lazy("requests"),
    refusal=_USED_UP,
)


def build_registry(rows: Iterable[Unit]) -> Mapping[str, Unit]:
    """Index the rows by name; raises ImproperlyConfigured where the model has other units."""
    found = {unit.name: unit for unit in rows}
    if list(found) != BudgetUnit.values:
        raise ImproperlyConfigured(
            f"budgets/units.py has rows for {', '.join(found)}, and models.budgets.BudgetUnit names"
            f" {', '.join(BudgetUnit.values)}: both need the same units in the same order."
        )
    for unit in found.values():
        full = BudgetUnit(unit.name).write(1_234_567).replace(",", "")
        if format_decimal(1_234_567, unit.digits) not in full:
            raise ImproperlyConfigured(
                f"BudgetUnit.write writes {unit.name} with other digits than budgets/units.py."
            )
    return found


#: Every unit by its name, in the order in which budgets are listed.
UNITS = build_registry((MONEY, TOKENS, TURNS, REQUESTS))


def show_amount(amount: int | None, unit: str) -> str:
    """Show an amount in its unit, rounded for people; "" for None."""
    return "" if amount is None else UNITS[unit].show(amount)


def parse_amount(text: str, unit: str) -> int:
    """Read an amount in its unit: dollars for money, else whole numbers."""
    return UNITS[unit].read(text)


def format_amount(amount: int, unit: str) -> str:
    """Write an amount as `parse_amount` reads it: 12.50 for money, else 500000."""
    return format_decimal(amount, UNITS[unit].digits)


def convert_to_cell(amount: int, unit: str) -> Decimal | int:
    """Return an amount as the cell of a spreadsheet: a number, for money in dollars."""
    digits = UNITS[unit].digits
    return Decimal(amount).scaleb(-digits) if digits else amount
