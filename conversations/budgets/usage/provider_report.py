"""A provider's report as CSV, compared with what was recorded, by day (UTC) and model.

The console of the API exports two: what was billed, in dollars, and what was used, in tokens. Which
one a file is, its columns say. Models are compared by their names, because a report of costs has no
ids. What was booked of a difference (budgets/booked_differences.py) is part of the comparison;
corrections of calls and windows by hand are not, as they say no day and model of a report.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal

from django.db.models import Sum
from django.utils.translation import gettext as _

from conversations.budgets.amounts import MICROS
from conversations.budgets.units import MONEY, TOKENS
from conversations.budgets.usage.days import Span
from conversations.budgets.usage.erased import list_erased_within
from conversations.budgets.usage.groups import Group, group_calls
from conversations.budgets.usage.sums import filter_calls_within
from conversations.models import BookedDifference
from conversations.models.budgets import MOST
from conversations.rendering.model_names import name_model

_DAY, _COST, _OUTPUT = "usage_date_utc", "cost_usd", "usage_output_tokens"
_TOKENS = (
    "usage_input_tokens_no_cache", "usage_input_tokens_cache_write_5m",
    "usage_input_tokens_cache_write_1h", "usage_input_tokens_cache_read", _OUTPUT,
)  # fmt: skip
#: Longest name of a model.
MOST_NAME = 100
Amounts = dict[tuple[str, str], int]


class ReportError(Exception):
    """A file that is no such report; the message says why."""

    code = "report"


@dataclass(frozen=True, slots=True)
class Difference:
    """What a report and the record say of one model on one day, in micro-dollars or tokens."""

    day: str
    model: str
    reported: int
    recorded: int
    #: What was booked of it already.
    booked: int = 0

    @property
    def more(self) -> int:
        """How much more was reported than recorded; negative: less."""
        return self.reported - self.recorded

    @property
    def left(self) -> int:
        """How much of the difference is not booked."""
        return self.more - self.booked


@dataclass(frozen=True, slots=True)
class Report:
    """What a provider's report says by day and model; `unit` is money or tokens."""

    unit: str
    amounts: Amounts

    @property
    def span(self) -> Span:
        days = sorted(date.fromisoformat(day) for day, _ in self.amounts)
        return Span(days[0], days[-1])


@dataclass(frozen=True, slots=True)
class Comparison:
    """The days and models of a report beside those of the record; `unit` is money or tokens."""

    unit: str
    rows: tuple[Difference, ...]


def read_report(lines: Iterable[str]) -> Report:
    """Read a report's CSV; raises ReportError."""
    rows = csv.DictReader(lines)
    columns = set(rows.fieldnames or ())
    if _DAY not in columns or not columns & {_COST, _OUTPUT}:
        raise ReportError(
            _("It needs the columns %(day)s, and %(cost)s or %(output)s.")
            % {"day": _DAY, "cost": _COST, "output": _OUTPUT}
        )
    unit = MONEY.name if _COST in columns else TOKENS.name
    try:
        amounts = _add_up(rows, unit)
    except csv.Error as error:
        raise ReportError(
            _("Line %(number)s cannot be read.") % {"number": rows.line_num}
        ) from error
    if not amounts:
        raise ReportError(_("It has no lines."))
    return Report(unit, amounts)


def compare_with_record(report: Report) -> Comparison:
    """Compare the report with the record of its days and with what was booked of them."""
    span, reported = report.span, report.amounts
    recorded, booked = _sum_recorded(span, report.unit), _sum_booked(span, report.unit)
    keys = sorted(reported.keys() | recorded.keys() | booked.keys())
    found = (
        Difference(*key, reported.get(key, 0), recorded.get(key, 0), booked.get(key, 0))
        for key in keys
    )
    return Comparison(report.unit, tuple(found))


def _add_up(rows: csv.DictReader[str], unit: str) -> Amounts:
    found: Amounts = defaultdict(int)
    for row in rows:
        try:
            day = date.fromisoformat(row[_DAY]).isoformat()
            amount = _read_dollars(row[_COST]) if unit == MONEY.name else _read_tokens(row)
        except (ArithmeticError, ValueError, TypeError) as error:
            raise ReportError(
                _("Line %(number)s cannot be read.") % {"number": rows.line_num}
            ) from error
        model = row.get("model") or row.get("model_version") or ""
        name = name_model(model.removeprefix("Claude ").replace("\0", ""))
        found[day, name[:MOST_NAME]] += amount
    return found


def _read_dollars(text: str) -> int:
    number = Decimal(text or "0")
    # A short text may have an exponent that makes a huge number.
    if not abs(number) <= MOST:
        raise ValueError(text)
    return int((number * MICROS).to_integral_value(ROUND_HALF_UP))


def _read_tokens(row: Mapping[str, str]) -> int:
    return sum(_read_count(row.get(name) or "0") for name in _TOKENS)


def _read_count(text: str) -> int:
    if len(text) > len(str(MOST)):
        raise ValueError(text)
    return int(text)


def _sum_recorded(span: Span, unit: str) -> Amounts:
    found: Amounts = defaultdict(int)
    for group in group_calls(filter_calls_within(span), list_erased_within(span)):
        found[group.day, name_model(group.model)] += _amount_of(group, unit)
    return found


def _sum_booked(span: Span, unit: str) -> Amounts:
    rows = BookedDifference.objects.filter(unit=unit, day__gte=span.first, day__lte=span.last)
    sums = rows.values_list("day", "model").annotate(sum=Sum("amount")).order_by()
    return {(day.isoformat(), model): int(amount) for day, model, amount in sums}


def _amount_of(group: Group, unit: str) -> int:
    figures = group.figures
    tokens = figures.input + figures.output + figures.cache_read + figures.cache_write
    return figures.micros if unit == MONEY.name else tokens
