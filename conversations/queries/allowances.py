"""A person's budgets as they stand: one answer for admission, pill, usage page and admin.

What is looked up never depends on how many budgets or groups there are: two queries.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import Group
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from conversations.allowances import Rule, Standing, effective
from conversations.models import Budget, BudgetWindow, Grant, User
from conversations.periods import bounds


@dataclass(frozen=True, slots=True)
class Place:
    """Where a budget counts now: its present window, whether that is there yet or not.

    `user_id` is None for a pool; `limit` has the grants in it.
    """

    rule: Rule
    user_id: int | None
    starts_at: datetime
    ends_at: datetime | None
    limit: int

    def is_of(self, window: BudgetWindow) -> bool:
        """Say whether it is the window of this very place."""
        mine = self.rule.id, self.user_id, self.starts_at
        return (window.budget_id, window.user_id, window.starts_at) == mine

    def counts(self, window: BudgetWindow) -> bool:
        """Say whether what the window has used counts here; `window.budget` is loaded."""
        if self.user_id is None or self.is_of(window):
            return self.is_of(window)
        kind = window.budget.unit, window.budget.period, window.starts_at, window.ends_at
        mine = self.rule.unit, self.rule.period, self.starts_at, self.ends_at
        return window.user_id == self.user_id and kind == mine


def places(user_id: int, now: datetime) -> tuple[Place, ...]:
    """Give the budgets that count for the person, in the order of their ids; one query."""
    mine = Q(scope="site") | Q(user=user_id) | Q(group__in=Group.objects.filter(user=user_id))
    rows = Budget.objects.filter(mine, is_active=True).select_related("group")
    rows = rows.exclude(Exists(User.objects.filter(pk=user_id, is_exempt=True)))
    rows = rows.annotate(granted=Coalesce(Subquery(_granted(user_id, now)), 0))
    found = {budget.pk: budget for budget in rows}
    return tuple(
        Place(
            rule,
            None if rule.is_pool else user_id,
            *bounds(rule.period, rule.zone, now),
            rule.limit + int(found[rule.id].granted),
        )
        for rule in effective(map(rule_of, found.values()))
    )


def _granted(user_id: int, now: datetime) -> QuerySet[Grant, Any]:
    """Add up what is granted on top of a budget, for all or for the person."""
    rows = Grant.objects.filter(Q(user=None) | Q(user=user_id), budget=OuterRef("pk"))
    rows = rows.filter(Q(expires_at=None) | Q(expires_at__gt=now), starts_at__lte=now)
    return rows.order_by().values("budget").annotate(sum=Sum("amount")).values("sum")


def rule_of(budget: Budget) -> Rule:
    percents = tuple(int(part) for part in budget.soft_percents.split(",") if part.strip())
    return Rule(
        budget.pk,
        budget.scope,
        budget.kind,
        budget.unit,
        budget.period,
        budget.time_zone,
        budget.limit,
        percents,
        budget.group.name if budget.group else "",
        budget.note,
    )


def windows_of(found: Iterable[Place]) -> QuerySet[BudgetWindow]:
    """Find what counts in any of the places, in the order of ids."""
    wanted = Q(pk__in=())
    for place in found:
        if place.user_id is None:
            wanted |= Q(budget=place.rule.id, user=None, starts_at=place.starts_at)
        else:
            wanted |= Q(user=place.user_id, starts_at=place.starts_at)
    return BudgetWindow.objects.filter(wanted).select_related("budget").order_by("pk")


def standing(place: Place, windows: Iterable[BudgetWindow]) -> Standing:
    """Add up what counts in a place."""
    here = [window for window in windows if place.counts(window)]
    return Standing(
        place.rule,
        place.starts_at,
        place.ends_at,
        place.limit,
        sum(window.spent + window.overrun for window in here),
        sum(window.held for window in here),
    )


def standings(user_id: int, now: datetime | None = None) -> tuple[Standing, ...]:
    """Give the person's budgets as they stand; none: nothing is limited."""
    found = places(user_id, now or timezone.now())
    windows = list(windows_of(found)) if found else []
    return tuple(standing(place, windows) for place in found)
