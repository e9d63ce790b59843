"""Calls grouped by day, model and purpose, from which all tables and charts are computed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from conversations.budgets.usage.days import UtcDay
from conversations.budgets.usage.erased import Erased
from conversations.budgets.usage.sums import SUMS, Figures, Line
from conversations.models import ApiCall

_PURPOSES = {
    "reply": _("Replies"),
    "summary": _("Summaries"),
    "title": _("Titles"),
    "": _("Erased chats"),
}


@dataclass(frozen=True, slots=True)
class Group:
    """Calls of one day, model and purpose; the purpose is "" for erased conversations."""

    day: str
    model: str
    purpose: str
    figures: Figures


def group_calls(calls: QuerySet[ApiCall], erased: Iterable[Erased]) -> tuple[Group, ...]:
    """Return the groups of calls, and those of erased conversations."""
    # Sorted here: with ORDER BY a database may group by sorting all rows.
    rows = calls.annotate(day=UtcDay("sent_at")).values("day", "model", "purpose").order_by()
    found = [
        Group(str(row["day"]), row["model"], row["purpose"], Figures.of(row))
        for row in rows.annotate(**SUMS)
    ]
    return add_erased(found, erased)


def add_erased(groups: Iterable[Group], erased: Iterable[Erased]) -> tuple[Group, ...]:
    """Return groups and those of erased conversations, by day, model and purpose."""
    gone = (Group(row.day, row.model, "", row.figures) for row in erased)
    rows = [*groups, *gone]
    return tuple(sorted(rows, key=lambda one: (one.day, one.model, one.purpose)))


def sum_lines(groups: Iterable[Group], name: Callable[[Group], str]) -> tuple[Line, ...]:
    """Add up the groups of each name, the most expensive first."""
    found: dict[str, Figures] = defaultdict(Figures)
    for group in groups:
        found[name(group)] += group.figures
    rows = [Line(each, figures) for each, figures in found.items()]
    return tuple(sorted(rows, key=lambda row: (-row.figures.micros, -row.figures.calls, row.name)))


def name_model(group: Group) -> str:
    return group.model


def name_purpose(group: Group) -> str:
    return str(_PURPOSES.get(group.purpose, group.purpose))
