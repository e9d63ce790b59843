"""Spans of whole days, and the UTC day of a moment as the database returns it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db.models import Field, Func
from django.utils.translation import gettext as _

#: Most days of one page.
MOST_DAYS = 366
ONE = timedelta(days=1)


class UtcDay(Func):
    """The day of a moment: text such as 2026-11-21 on SQLite, where moments are text, else a date.

    Unlike Django's own function on SQLite it calls no Python for each row.
    """

    output_field = Field()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, template="substr(%(expressions)s, 1, 10)")

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "((%(expressions)s) AT TIME ZONE 'UTC')::date"
        return self.as_sql(compiler, connection, template=template)


@dataclass(frozen=True, slots=True)
class Span:
    """Whole days, both ends included; `name` is the named span that was chosen."""

    first: date
    last: date
    name: str = "custom"
    problem: str = ""

    @property
    def starts_at(self) -> datetime:
        return datetime.combine(self.first, time(), UTC)

    @property
    def ends_at(self) -> datetime:
        """The first moment after it."""
        return datetime.combine(self.last + ONE, time(), UTC)

    @property
    def days(self) -> tuple[str, ...]:
        count = (self.last - self.first).days + 1
        return tuple((self.first + ONE * at).isoformat() for at in range(count))


def read_span(query: Mapping[str, str], today: date) -> Span:
    """Read the span from a page's query: a named one, or from one day to another."""
    if query.get("from") or query.get("to"):
        return _read_custom_span(query.get("from", ""), query.get("to", ""), today)
    name = query.get("period", "")
    return make_named_span(name if name in NAMED else "month", today)


#: Names of spans, in the order in which pages list them.
NAMED = ("month", "last-month", "7", "30", "90")


def make_named_span(name: str, today: date) -> Span:
    """Return this month, the last month, or the given number of days up to today."""
    begins = today.replace(day=1)
    match name:
        case "month":
            return Span(begins, today, name)
        case "last-month":
            return Span((begins - ONE).replace(day=1), begins - ONE, name)
        case _:
            return Span(today - ONE * (int(name) - 1), today, name)


def _read_custom_span(first: str, last: str, today: date) -> Span:
    try:
        begins, ends = date.fromisoformat(first), date.fromisoformat(last or today.isoformat())
    except ValueError:
        problem = _("Write both days as year-month-day, for example 2026-11-01.")
    else:
        if begins > ends:
            problem = _("The first day comes after the last.")
        elif (ends - begins).days >= MOST_DAYS or ends.year > 9000:
            problem = _("At most %(days)d days fit on one page.") % {"days": MOST_DAYS}
        else:
            return Span(begins, ends)
    month = make_named_span("month", today)
    return Span(month.first, month.last, month.name, problem)
