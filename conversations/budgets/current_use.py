"""Budgets in their present windows for the admin: of a list, of one budget, and of one person.

The budgets of a person come from `find_effective_budgets`, so these pages agree with admission. An
allowance of many members shows the member with the highest use, and the sum of all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import BigIntegerField, Count, F, Max, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from conversations.budgets.effective import BudgetStatus
from conversations.budgets.status import (
    EffectiveBudget,
    compute_status,
    filter_windows,
    find_effective_budgets,
    rule_of,
)
from conversations.models import Budget, BudgetWindow, Grant, LedgerEntry
from conversations.models.periods import compute_bounds

#: Most members of an allowance that are listed.
MOST_MEMBERS = 25
_USED = F("spent") + F("overrun") + F("held")


@dataclass(frozen=True, slots=True)
class CurrentUse:
    """The present use of a budget.

    `members` is None if it has one window, else the number of members who used it. Then `spent` and
    `held` are those of the member with the highest use, and `total` is the sum of all.
    """

    budget: Budget
    starts_at: datetime
    ends_at: datetime | None
    limit: int
    spent: int
    held: int
    window: int | None = None
    members: int | None = None
    total: int = 0


def compute_current_use(budgets: Sequence[Budget]) -> dict[int, CurrentUse]:
    """Return the use of each budget by its id; four queries, whatever their number."""
    now = timezone.now()
    top = _find_top_members(budgets, now)
    granted = _sum_grants(budgets, now, top)
    spots = {
        budget.pk: _build_effective(budget, granted.get(budget.pk, 0), now) for budget in budgets
    }
    single = [spots[budget.pk] for budget in budgets if _is_single(budget)]
    windows = list(filter_windows(single)) if single else []
    shared = _sum_members([budget for budget in budgets if not _is_single(budget)], now)
    found = {}
    for budget in budgets:
        effective = spots[budget.pk]
        if _is_single(budget):
            one = compute_status(effective, windows)
            window = _find_window_id(effective, windows)
            found[budget.pk] = CurrentUse(
                budget, effective.starts_at, effective.ends_at, effective.limit, one.spent,
                one.held, window,
            )  # fmt: skip
        else:
            held = top[budget.pk][1]
            found[budget.pk] = _use_of_top_member(
                effective, budget, held, shared.get(budget.pk, {})
            )
    return found


def _is_single(budget: Budget) -> bool:
    return budget.kind == Budget.Kind.POOL or budget.user_id is not None


def _build_effective(budget: Budget, granted: int, now: datetime) -> EffectiveBudget:
    rule = rule_of(budget)
    times = compute_bounds(rule.period, rule.zone, now)
    return EffectiveBudget(rule, budget.user_id, *times, budget.limit + granted)


def _find_window_id(effective: EffectiveBudget, windows: Iterable[BudgetWindow]) -> int | None:
    return next((window.pk for window in windows if effective.is_of(window)), None)


def filter_running_grants(now: datetime | None = None) -> QuerySet[Grant]:
    """Return the grants in force."""
    now = now or timezone.now()
    ends = Q(expires_at=None) | Q(expires_at__gt=now)
    return Grant.objects.filter(ends, starts_at__lte=now)


def sum_running_grants(
    budgets: Iterable[int], now: datetime | None = None
) -> Counter[tuple[int, int | None]]:
    """Add up the grants in force, by the keys of budgets and people; None: to everybody."""
    rows = filter_running_grants(now).filter(budget__in=budgets).order_by()
    sums = rows.values_list("budget", "user").annotate(sum=Sum("amount"))
    return Counter({(budget, user): int(amount) for budget, user, amount in sums})


def _sum_grants(
    budgets: Iterable[Budget], now: datetime, top: Mapping[int, tuple[int | None, int]]
) -> dict[int, int]:
    """Add up the grants to everybody and to the member with the highest use, by budget."""
    found: dict[int, int] = {}
    for (budget, user), amount in sum_running_grants([one.pk for one in budgets], now).items():
        if user is None or user == top[budget][0]:
            found[budget] = found.get(budget, 0) + amount
    return found


def _find_top_members(
    budgets: Iterable[Budget], now: datetime
) -> dict[int, tuple[int | None, int]]:
    """Return the member with the highest use and their hold, by budget; of a person's own, them."""
    windows = filter_open_windows(now).filter(budget=OuterRef("pk"), user__isnull=False)
    most = windows.order_by(_USED.desc(), "pk")
    rows = Budget.objects.filter(pk__in=[budget.pk for budget in budgets]).annotate(
        top=Coalesce("user_id", Subquery(most.values("user")[:1]), output_field=BigIntegerField()),
        holds=Coalesce(Subquery(most.values("held")[:1]), 0, output_field=BigIntegerField()),
    )
    return {key: (user, holds) for key, user, holds in rows.values_list("pk", "top", "holds")}


def filter_open_windows(now: datetime | None = None) -> QuerySet[BudgetWindow]:
    now = now or timezone.now()
    return BudgetWindow.objects.filter(Q(ends_at=None) | Q(ends_at__gt=now), starts_at__lte=now)


def _sum_members(budgets: Sequence[Budget], now: datetime) -> dict[int, Mapping[str, Any]]:
    """Return the number of members, the highest use and the sum, by budget."""
    if not budgets:
        return {}
    rows = filter_open_windows(now).filter(budget__in=budgets, user__isnull=False).order_by()
    sums = rows.values("budget").annotate(members=Count("pk"), most=Max(_USED), total=Sum(_USED))
    return {row["budget"]: row for row in sums}


def _use_of_top_member(
    effective: EffectiveBudget, budget: Budget, held: int, row: Mapping[str, Any]
) -> CurrentUse:
    spent = int(row.get("most", held)) - held
    return CurrentUse(
        budget, effective.starts_at, effective.ends_at, effective.limit, spent, held,
        members=row.get("members", 0), total=int(row.get("total", 0)),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class MemberUse:
    """One open window of a budget, with the limit that applies there."""

    window: BudgetWindow
    limit: int

    @property
    def spent(self) -> int:
        return self.window.spent + self.window.overrun


def list_members(budget: Budget) -> list[MemberUse]:
    """Return the open windows of a budget, the most used first."""
    now = timezone.now()
    rows = filter_open_windows(now).filter(budget=budget).select_related("user")
    found = list(rows.order_by(_USED.desc(), "pk")[:MOST_MEMBERS])
    extra: dict[int | None, int] = {}
    for user, amount in (
        filter_running_grants(now).filter(budget=budget).values_list("user", "amount")
    ):
        extra[user] = extra.get(user, 0) + amount
    shared = budget.limit + extra.get(None, 0)
    return [
        MemberUse(row, shared + (extra.get(row.user_id, 0) if row.user_id else 0)) for row in found
    ]


@dataclass(frozen=True, slots=True)
class EffectiveUse:
    """The status of a budget that applies to a person, and its window; None before first use."""

    status: BudgetStatus
    window: int | None


def list_effective_use(user_id: int) -> list[EffectiveUse]:
    """Return what applies to a person now; two queries."""
    found = find_effective_budgets(user_id, timezone.now())
    windows = list(filter_windows(found)) if found else []
    return [
        EffectiveUse(compute_status(effective, windows), _find_window_id(effective, windows))
        for effective in found
    ]


def filter_grants_for(user_id: int, budgets: Iterable[int]) -> QuerySet[Grant]:
    """Return the grants in force on these budgets, to everybody or to the person."""
    mine = filter_running_grants().filter(Q(user=None) | Q(user=user_id), budget__in=budgets)
    return mine.select_related("actor", "budget__group", "budget__user").order_by("-pk")


def list_corrections(**where: object) -> QuerySet[LedgerEntry]:
    """Return the corrections of some windows, the newest first."""
    rows = LedgerEntry.objects.filter(kind=LedgerEntry.Kind.ADJUST, **where)
    return rows.select_related("actor", "window__budget").order_by("-pk")
