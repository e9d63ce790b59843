"""Users and models side by side: calls, tokens, money, and what compaction saved and cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from django.db.models import Q, Sum

from conversations.budgets.usage.days import Span
from conversations.budgets.usage.erased import Erased
from conversations.budgets.usage.groups import Group
from conversations.budgets.usage.savings import (
    CHANGES,
    Changes,
    filter_changes_within,
)
from conversations.budgets.usage.sums import SUMS, Figures, filter_calls_within
from conversations.models import User

#: The cost of summary calls of any kind.
_COMPACTING = Sum("result__cost_micros", filter=Q(purpose="summary"))


NONE, UNCHANGED = Figures(), Changes()


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
        return replace(
            self,
            figures=self.figures + other.figures,
            changes=self.changes + other.changes,
            compacting=self.compacting + other.compacting,
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
    names = dict(User.objects.filter(pk__in=list(found)).values_list("pk", "username"))
    return _sort_by_cost(replace(each, name=names[key], key=key) for key, each in found.items())


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
