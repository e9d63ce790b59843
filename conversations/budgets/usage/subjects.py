"""Users and models side by side: calls, tokens, money, and what compaction saved and cost."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from django.db import connection
from django.db.models import Q, Sum
from django.db.models.expressions import RawSQL

from conversations.budgets.usage.days import Span
from conversations.budgets.usage.erased import Erased
from conversations.budgets.usage.groups import Group
from conversations.budgets.usage.savings import (
    CHANGES,
    Changes,
    add_changes,
    filter_changes_within,
)
from conversations.budgets.usage.sums import SUMS, Figures, add_figures, filter_calls_within
from conversations.models import User

#: The cost of summary calls of any kind.
_COMPACTING = Sum("result__cost_micros", filter=Q(purpose="summary"))


NONE, UNCHANGED = Figures(), Changes()


def select_keys(keys: Iterable[int]) -> RawSQL:
    """Return keys as a subquery for `__in`: one parameter, however many keys there are."""
    rows = (
        "SELECT value::bigint FROM json_array_elements_text(%s::json)"
        if connection.vendor == "postgresql"
        else "SELECT value FROM json_each(%s)"
    )
    return RawSQL(rows, [json.dumps(list(keys))])  # noqa: S611 - the keys are a parameter


@dataclass(frozen=True, slots=True)
class Subject:
    """One user (`key`) or model; `compacting` is the part of the cost that summaries caused."""

    name: str
    figures: Figures = NONE
    changes: Changes = UNCHANGED
    compacting: int = 0
    key: int | None = None

    def plus(self, other: Subject) -> Subject:
        """Return the sum with another subject, under this one's name."""
        # `replace` takes three times as long, and thousands of people are added up.
        return Subject(
            self.name,
            self.figures + other.figures,
            self.changes + other.changes,
            self.compacting + other.compacting,
            self.key,
        )


def add_subjects(name: str, subjects: Collection[Subject]) -> Subject:
    return Subject(
        name,
        add_figures(one.figures for one in subjects),
        add_changes(one.changes for one in subjects),
        sum(one.compacting for one in subjects),
    )


def sum_users(
    span: Span, erased: Iterable[Erased], closed: Iterable[Subject] = ()
) -> list[Subject]:
    """Return the users whose calls were sent within the span, by falling cost; three queries.

    `closed` is what they did before it, for each by their key.
    """
    found: defaultdict[int, Subject] = defaultdict(lambda: Subject(""))
    found.update({one.key: one for one in closed if one.key is not None})
    calls = filter_calls_within(span).values("conversation__owner").order_by()
    for row in calls.annotate(**SUMS, paid=_COMPACTING):
        paid = int(row["paid"] or 0)
        owner = row["conversation__owner"]
        found[owner] = found[owner].plus(Subject("", Figures.of(row), compacting=paid))
    changes = filter_changes_within(span).values("conversation__owner").order_by()
    for reduced in changes.annotate(**CHANGES):
        owner = reduced["conversation__owner"]
        found[owner] = found[owner].plus(Subject("", changes=Changes.of(reduced)))
    for gone in erased:
        before = found[gone.owner]
        found[gone.owner] = replace(before, figures=before.figures + gone.figures)
    names = User.objects.filter(pk__in=select_keys(found)).values_list("pk", "username")
    return _sort_by_cost(
        Subject(name, one.figures, one.changes, one.compacting, key)
        for key, name in names.order_by()
        for one in (found[key],)
    )


def sum_models(groups: Iterable[Group], changes: Iterable[tuple[str, Changes]]) -> list[Subject]:
    """Return the models of calls and of changed contexts, by falling cost."""
    found: defaultdict[str, Subject] = defaultdict(lambda: Subject(""))
    for group in groups:
        paid = group.figures.micros if group.purpose == "summary" else 0
        found[group.model] = found[group.model].plus(Subject("", group.figures, compacting=paid))
    for model, changed in changes:
        found[model] = found[model].plus(Subject("", changes=changed))
    return _sort_by_cost(replace(each, name=name) for name, each in found.items())


def _sort_by_cost(subjects: Iterable[Subject]) -> list[Subject]:
    return sorted(subjects, key=lambda one: (-one.figures.micros, -one.figures.calls, one.name))
