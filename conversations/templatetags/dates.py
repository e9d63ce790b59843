"""The bar of dates above a list of the admin, drawn from the list's first and last moment.

Django's own asks which months occur, and so reads every row of the table for each page.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from datetime import date
from typing import Any

from django import template
from django.db.models import Model
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.text import capfirst
from django.utils.translation import gettext as _

register = template.Library()


@register.inclusion_tag("admin/date_hierarchy.html")
def date_bar(shown: Any) -> dict[str, Any]:
    """Offer the years, months or days between the first row and the last, and the way back."""
    field = shown.date_hierarchy
    names = [f"{field}__{part}" for part in ("year", "month", "day")]
    asked = [shown.params.get(name) for name in names]
    chosen = [int(part) for part in asked if part]
    first, last = _find_end(shown.model, field), _find_end(shown.model, f"-{field}")
    if first is None or last is None:
        return {"show": False}
    shared = _list_shared(first, last)
    at = chosen or shared

    def link(parts: list[int]) -> str:
        where = dict(zip(names, parts, strict=False))
        return str(shown.get_query_string(where, [f"{field}__"]))

    choices = [
        {"title": _name(parts), "link": "" if parts == chosen else link(parts)}
        for parts in list_steps(first, last, at)
    ]
    back = {"title": _name(at[:-1]), "link": link(at[:-1])} if chosen else None
    return {"show": True, "back": back, "choices": choices}


def list_steps(first: date, last: date, at: list[int]) -> Iterator[list[int]]:
    """Yield what can be chosen between two days, ends included, at a year, a month, a day or []."""
    match at:
        case []:
            yield from ([year] for year in range(first.year, last.year + 1))
        case [year]:
            months = [[year, month] for month in range(1, 13)]
            ends = [first.year, first.month], [last.year, last.month]
            yield from (each for each in months if ends[0] <= each <= ends[1])
        case [year, month] if 1 <= month <= 12:
            days = [[year, month, day] for day in range(1, _count_days(year, month) + 1)]
            yield from (each for each in days if first <= date(*each) <= last)
        case [year, month, day] if 1 <= month <= 12 and 1 <= day <= _count_days(year, month):
            yield at


def _count_days(year: int, month: int) -> int:
    return monthrange(year, month)[1] if date.min.year <= year <= date.max.year else 0


def _list_shared(first: date, last: date) -> list[int]:
    """Return what both days have in common: [], their year, or their year and month."""
    if first.year != last.year:
        return []
    return [first.year, first.month] if first.month == last.month else [first.year]


def _find_end(model: type[Model], order: str) -> date | None:
    name = order.removeprefix("-")
    rows = model._default_manager.exclude(**{name: None}).order_by(order)
    found = rows.values_list(name, flat=True).first()
    return None if found is None else timezone.localdate(found)


def _name(parts: list[int]) -> str:
    match parts:
        case [year, month, day]:
            return capfirst(date_format(date(year, month, day), "MONTH_DAY_FORMAT"))
        case [year, month]:
            return capfirst(date_format(date(year, month, 1), "YEAR_MONTH_FORMAT"))
        case [year]:
            return str(year)
        case _:
            return _("All dates")
