"""Windows of budgets: created on first use, locked in the order of their ids.

They are the last rows that a transaction locks (turn, conversation, windows), and a missing one is
created before any is locked, so no two transactions deadlock.

What counts in an allowance may have been used under another one: who changes allowances makes the
windows of those that apply from then on, so that they are seen before the next call.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.utils import timezone

from conversations.budgets.current_use import filter_open_windows, sum_running_grants
from conversations.budgets.effective import BudgetStatus, choose_effective
from conversations.budgets.status import (
    EffectiveBudget,
    compute_status,
    filter_windows,
    find_effective_budgets,
    rule_of,
)
from conversations.models import Budget, BudgetWindow, User
from conversations.models.periods import compute_bounds


@dataclass(frozen=True, slots=True)
class Slot:
    """A budget with its locked window; the status includes use under other allowances."""

    budget: EffectiveBudget
    window: BudgetWindow
    status: BudgetStatus


def lock_slots(
    user_id: int, now: datetime | None = None, models: Collection[str] = ()
) -> tuple[Slot, ...]:
    """Return the budgets that apply to this person's calls now, their windows locked.

    Where `models` are named, only those that apply to calls of one of them.
    """
    found = find_effective_budgets(user_id, now or timezone.now(), models)
    if not found:
        return ()
    _create_windows(budget for budget in found if not budget.is_made)
    windows = list(filter_windows(found).select_for_update(of=("self",)))
    return tuple(
        Slot(budget, window, compute_status(budget, windows))
        for budget in found
        for window in windows
        if budget.is_of(window)
    )


def _create_windows(missing: Iterable[EffectiveBudget]) -> None:
    windows = [
        BudgetWindow(
            budget_id=budget.rule.id,
            user_id=budget.user_id,
            starts_at=budget.starts_at,
            ends_at=budget.ends_at,
            limit=budget.limit,
        )
        for budget in missing
    ]
    if windows:
        BudgetWindow.objects.bulk_create(windows, ignore_conflicts=True)


def make_windows_of_use(*, slot: dict[str, str], people: Collection[int] | None) -> None:
    """Make the missing windows of the allowances in which people's present use counts.

    `slot` is the unit, period and model of the allowances; `people` None: everybody.
    """
    used: defaultdict[int, set[tuple[Any, ...]]] = defaultdict(set)
    there = set[tuple[int, int]]()
    now, whose = timezone.now(), {"user__isnull": False} if people is None else {"user__in": people}
    alike = {f"budget__{name}": value for name, value in slot.items()}
    rows = filter_open_windows(now).filter(budget__kind=Budget.Kind.PER_MEMBER, **alike, **whose)
    for row in rows:
        there.add((row.user_id or 0, row.budget_id))
        if row.spent or row.held or row.overrun:
            used[row.user_id or 0].add((row.starts_at, row.ends_at))
    missing = []
    for user, budget in _choose_allowances(slot, used):
        times = compute_bounds(budget.period, budget.time_zone, now)
        if times in used[user] and (user, budget.pk) not in there:
            missing.append(
                BudgetWindow(budget=budget, user_id=user, starts_at=times[0], ends_at=times[1])
            )
    if not missing:
        return
    more = sum_running_grants({row.budget_id for row in missing}, now)
    for row in missing:
        # A day that is over says it, where no call follows.
        row.limit = row.budget.limit + more[row.budget_id, None] + more[row.budget_id, row.user_id]
    BudgetWindow.objects.bulk_create(missing, ignore_conflicts=True)


def _choose_allowances(
    slot: dict[str, str], people: Collection[int]
) -> Iterable[tuple[int, Budget]]:
    """Yield the allowance of each person that has one; two queries."""
    if not people:
        return
    rows = Budget.objects.filter(is_active=True, kind=Budget.Kind.PER_MEMBER, **slot)
    budgets = {row.pk: row for row in rows.select_related("group")}
    by_subject = defaultdict[tuple[str, int | None], list[Budget]](list)
    for row in budgets.values():
        by_subject[row.scope, row.user_id or row.group_id].append(row)
    groups = defaultdict[int, list[int]](list)
    members = User.groups.through.objects.filter(user__in=people)
    for user, group in members.values_list("user", "group"):
        groups[user].append(group)
    for user in people:
        subjects = (("site", None), ("user", user), *(("group", key) for key in groups[user]))
        found = [rule_of(row) for one in subjects for row in by_subject[one]]
        yield from ((user, budgets[rule.id]) for rule in choose_effective(found))


def update_windows(windows: Iterable[BudgetWindow], *names: str) -> None:
    """Write these columns of windows that the caller has locked, one statement for each window.

    Raw SQL, because the ORM takes longer to compile a statement over many rows than it takes to
    run.
    """
    quoted = connection.ops.quote_name
    columns = ", ".join(f"{quoted(name)} = %s" for name in names)
    table = quoted(BudgetWindow._meta.db_table)
    rows = [(*(getattr(window, name) for name in names), window.pk) for window in windows]
    with connection.cursor() as cursor:
        cursor.executemany(f"UPDATE {table} SET {columns} WHERE id = %s", rows)  # noqa: S608
