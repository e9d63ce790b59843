"""A provider's report as CSV, compared with what was recorded, by day (UTC) and model.

The console of the API exports two: what was billed, in dollars, and what was used, in tokens. Which
one a file is, its columns say. Models are compared by their names, because a report of costs has no
ids.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation

from django.utils.translation import gettext as _

from conversations.budgets.units import MONEY, TOKENS
from conversations.budgets.usage.days import Span
from conversations.budgets.usage.erased import list_erased_within
from conversations.budgets.usage.groups import Group, group_calls
from conversations.budgets.usage.sums import filter_calls_within
from conversations.rendering.model_names import name_model

_DAY, _COST, _OUTPUT = "usage_date_utc", "cost_usd", "usage_output_tokens"
_TOKENS = (
    "usage_input_tokens_no_cache", "usage_input_tokens_cache_write_5m",
    "usage_input_tokens_cache_write_1h", "usage_input_tokens_cache_read", _OUTPUT,
)  # fmt: skip
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

    @property
    def more(self) -> int:
        """How much more was reported than recorded; negative: less."""
        return self.reported - self.recorded


@dataclass(frozen=True, slots=True)
class Comparison:
    """The days and models of a report beside those of the record; `unit` is money or tokens."""

    unit: str
    rows: tuple[Difference, ...]


def compare_report(lines: Iterable[str]) -> Comparison:
    """Compare the report with the record of its days; raises ReportError."""
    rows = csv.DictReader(lines)
    columns = set(rows.fieldnames or ())
    if _DAY not in columns or not columns & {_COST, _OUTPUT}:
        raise ReportError(
            _("It needs the columns %(day)s, and %(cost)s or %(output)s.")
            % {"day": _DAY, "cost": _COST, "output": _OUTPUT}
        )
    unit = MONEY.name if _COST in columns else TOKENS.name
    reported = _add_up(rows, unit)
    if not reported:
        raise ReportError(_("It has no lines."))
    days = sorted(date.fromisoformat(day) for day, _ in reported)
    recorded = _sum_recorded(Span(days[0], days[-1]), unit)
    keys = sorted(reported.keys() | recorded.keys())
    found = (Difference(*key, reported.get(key, 0), recorded.get(key, 0)) for key in keys)
    return Comparison(unit, tuple(found))


def _add_up(rows: csv.DictReader[str], unit: str) -> Amounts:
    found: Amounts = defaultdict(int)
    for row in rows:
        try:
            day = date.fromisoformat(row[_DAY]).isoformat()
            amount = _read_dollars(row[_COST]) if unit == MONEY.name else _read_tokens(row)
        except (ValueError, InvalidOperation, TypeError) as error:
            raise ReportError(
                _("Line %(number)s cannot be read.") % {"number": rows.line_num}
            ) from error
        model = row.get("model") or row.get("model_version") or ""
        found[day, name_model(model.removeprefix("Claude "))] += amount
    return found


def _read_dollars(text: str) -> int:
    return int((Decimal(text or "0") * 1_000_000).to_integral_value(ROUND_HALF_UP))


def _read_tokens(row: Mapping[str, str]) -> int:
    return sum(int(row.get(name) or 0) for name in _TOKENS)


def _sum_recorded(span: Span, unit: str) -> Amounts:
    found: Amounts = defaultdict(int)
    for group in group_calls(filter_calls_within(span), list_erased_within(span)):
        found[group.day, name_model(group.model)] += _amount_of(group, unit)
    return found


def _amount_of(group: Group, unit: str) -> int:
    figures = group.figures
    tokens = figures.input + figures.output + figures.cache_read + figures.cache_write
    return figures.micros if unit == MONEY.name else tokens
