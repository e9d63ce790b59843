"""Windows of budgets: created on first use, locked in the order of their ids.

They are the last rows that a transaction locks (turn, conversation, windows), and a missing one is
created before any is locked, so no two transactions deadlock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.utils import timezone

from conversations.budgets.effective import BudgetStatus
from conversations.budgets.status import (
    EffectiveBudget,
    compute_status,
    filter_windows,
    find_effective_budgets,
)
from conversations.models import BudgetWindow


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
        )
        for budget in missing
    ]
    if windows:
        BudgetWindow.objects.bulk_create(windows, ignore_conflicts=True)


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
