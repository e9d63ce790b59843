"""Books what a provider's report says beyond the record, once.

The difference belongs to no call and so to no person. It is charged only to the site's pools in
its unit that count its model, in the window that contains noon UTC of its day; no person's
allowance and no group's pool changes. Pools by minute or hour, and those made after the day, are
left out. Where no pool is left, only the booking itself is recorded. What calls have cost, on pages
and in files, stays what their results say.

Only what is left of a difference can be booked: what was reported, less what is recorded and what
was booked before. It is computed with the windows and the end of the site's chain locked, so that
of two bookings at once, or of one report sent twice, the second finds nothing left.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import reduce
from operator import or_
from uuid import uuid5

from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from conversations.budgets.grants import (
    BudgetError,
    clean_reason,
    correct_window,
    lock_windows,
)
from conversations.budgets.usage.provider_report import Comparison, Report, compare_with_record
from conversations.db import transact
from conversations.log.chain import append_row, lock_site_chain
from conversations.models import (
    ApiModel,
    BookedDifference,
    Budget,
    BudgetWindow,
    LedgerEntry,
    User,
)
from conversations.models.catalogue import is_model_in
from conversations.models.periods import compute_bounds
from conversations.rendering.model_names import name_model


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody saw to be left of a day and model, and wants to have booked."""

    day: str
    model: str
    amount: int


@dataclass(frozen=True, slots=True)
class Pools:
    """The site's pools of a unit, and the models of the catalogue by their names."""

    budgets: Sequence[Budget]
    ids: dict[str, list[str]]

    def list_for(self, day: date, model: str) -> list[Budget]:
        """List the pools in which a call of this day and model counts."""
        made = f"claude-{model.lower().replace(' ', '-').replace('.', '-')}"
        ids = self.ids.get(model, [made])
        before = datetime.combine(day + timedelta(days=1), time(), UTC)
        return [
            budget
            for budget in self.budgets
            if budget.created_at < before and any(is_model_in(budget.model, key) for key in ids)
        ]


def load_pools(unit: str) -> Pools:
    found = Budget.objects.filter(
        scope=Budget.Scope.SITE, kind=Budget.Kind.POOL, unit=unit, is_active=True
    )
    ids: dict[str, list[str]] = {}
    for key in ApiModel.objects.values_list("pk", flat=True):
        ids.setdefault(name_model(key), []).append(key)
    return Pools(
        list(found.exclude(period__in=(Budget.Period.MINUTE, Budget.Period.HOUR)).order_by("pk")),
        ids,
    )


def is_over(day: date) -> bool:
    """Return whether a day (UTC) is over: before, its report and record still grow."""
    return day < timezone.now().astimezone(UTC).date()


def list_wanted(found: Comparison) -> list[Wanted]:
    """List what is left to book of the days of a comparison that are over."""
    return [
        Wanted(row.day, row.model, row.left)
        for row in found.rows
        if row.left and is_over(date.fromisoformat(row.day))
    ]


@transact
def book_differences(
    *, report: Report, wanted: Collection[Wanted], reason: str, actor: User | None = None
) -> list[BookedDifference]:
    """Book what is left of these days and models; nothing where nothing is left any more.

    Raises BudgetError, and books none of them, where something else is left than was seen.
    """
    reason, pools = clean_reason(reason), load_pools(report.unit)
    places = {one: _make_windows(pools, one) for one in wanted}
    lock_windows({key for keys in places.values() for key in keys})
    lock_site_chain()
    left = {(row.day, row.model): row.left for row in compare_with_record(report).rows}
    done = []
    for one, windows in places.items():
        now = left.get((one.day, one.model), 0)
        if now == 0:
            continue
        if now != one.amount:
            raise BudgetError(_("Something changed since the preview: look at it again."))
        done.append(_book(report.unit, one, sorted(windows), reason, actor))
    return done


def _make_windows(pools: Pools, one: Wanted) -> list[int]:
    """Return the keys of the windows of a day and model, made where they are missing."""
    day = _read_day(one.day)
    noon = datetime.combine(day, time(12), UTC)
    rows = []
    for budget in pools.list_for(day, one.model):
        starts, ends = compute_bounds(budget.period, budget.time_zone, noon)
        rows.append(BudgetWindow(budget=budget, starts_at=starts, ends_at=ends))
    if not rows:
        return []
    BudgetWindow.objects.bulk_create(rows, ignore_conflicts=True)
    is_one = reduce(or_, (Q(budget=row.budget, starts_at=row.starts_at) for row in rows))
    return list(BudgetWindow.objects.filter(is_one, user=None).values_list("pk", flat=True))


def _read_day(text: str) -> date:
    day = date.fromisoformat(text)
    if not is_over(day):
        raise BudgetError(_("A day can be booked when it is over."))
    return day


def _book(
    unit: str, one: Wanted, windows: list[int], reason: str, actor: User | None
) -> BookedDifference:
    row = BookedDifference(
        day=_read_day(one.day), model=one.model, unit=unit, amount=one.amount,
        windows=len(windows), reason=reason, actor=actor,
    )  # fmt: skip
    for key in windows:
        correct_window(
            window_id=key, amount=one.amount, reason=reason, actor=actor,
            form=uuid5(row.form, str(key)),
        )  # fmt: skip
    append_row(row, lock_site_chain())
    return row


def list_entries(row: BookedDifference) -> list[LedgerEntry]:
    """List the entries of the ledger that were made when a difference was booked."""
    noon = datetime.combine(row.day, time(12), UTC)
    is_there = Q(starts_at__lte=noon) & (Q(ends_at=None) | Q(ends_at__gt=noon))
    pool = {"scope": Budget.Scope.SITE, "kind": Budget.Kind.POOL, "unit": row.unit}
    windows = BudgetWindow.objects.filter(
        is_there, **{f"budget__{name}": value for name, value in pool.items()}
    )
    forms = [uuid5(row.form, str(key)) for key in windows.values_list("pk", flat=True)]
    return list(LedgerEntry.objects.filter(form__in=forms).order_by("pk"))
