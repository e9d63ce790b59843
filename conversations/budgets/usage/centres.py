"""Calls grouped by day and cost centre; what counts for none is the rest of all calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from conversations.budgets.usage.days import UtcDay
from conversations.budgets.usage.erased import Erased
from conversations.budgets.usage.groups import Group
from conversations.budgets.usage.sums import SUMS, Figures, Line, add_figures
from conversations.models import ApiCall, CostCentre


@dataclass(frozen=True, slots=True)
class Centre:
    """The calls of one day that count for the cost centre with this key."""

    day: str
    key: int
    figures: Figures


def group_centres(calls: QuerySet[ApiCall]) -> tuple[Centre, ...]:
    rows = calls.exclude(cost_centre=None).annotate(day=UtcDay("sent_at"))
    sums = rows.values("day", "cost_centre").order_by().annotate(**SUMS)
    found = [Centre(str(row["day"]), row["cost_centre"], Figures.of(row)) for row in sums]
    return tuple(sorted(found, key=lambda one: (one.day, one.key)))


def add_erased_centres(centres: Iterable[Centre], erased: Iterable[Erased]) -> tuple[Centre, ...]:
    gone = (Centre(row.day, row.centre, row.figures) for row in erased if row.centre is not None)
    return (*centres, *gone)


def sum_centres(centres: Iterable[Centre], groups: Iterable[Group]) -> tuple[Line, ...]:
    """Add up each cost centre and the rest, the most expensive first."""
    sums: defaultdict[int, Figures] = defaultdict(Figures)
    for one in centres:
        sums[one.key] += one.figures
    names = name_centres(sums)
    lines = [Line(names[key], figures) for key, figures in sums.items()]
    rest = add_figures(one.figures for one in groups) - add_figures(sums.values())
    if rest.calls:
        lines.append(Line(_("No cost centre"), rest))
    return tuple(sorted(lines, key=lambda line: (-line.figures.micros, line.name)))


def split_by_centre(
    centres: Iterable[Centre], groups: Iterable[Group]
) -> list[tuple[str, str, int]]:
    """Return (day, name, micro-dollars) of each cost centre, and of the rest of each day."""
    rows = list(centres)
    names = name_centres({one.key for one in rows})
    rest: defaultdict[str, int] = defaultdict(int)
    for group in groups:
        rest[group.day] += group.figures.micros
    for one in rows:
        rest[one.day] -= one.figures.micros
    found = [(one.day, names[one.key], one.figures.micros) for one in rows]
    none = _("No cost centre")
    return found + [(day, none, micros) for day, micros in rest.items() if micros]


def name_centres(keys: Iterable[int]) -> dict[int, str]:
    """Return the names of cost centres by their keys; one query."""
    return {row.pk: str(row) for row in CostCentre.objects.filter(pk__in=set(keys))}
