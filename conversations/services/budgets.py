"""Money: held before a call, settled with its answer, in the transactions of those facts.

A window's row is updated only where the new total stays within the limit, so what is spent plus
what is held never passes it, whatever runs in parallel. What settles above its reservation goes to
`overrun`: never lost, never in the way.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db.models import F, Q
from django.utils import timezone

from conversations.models import Budget, BudgetWindow, LedgerEntry, Reservation
from conversations.ports import Refused
from conversations.templatetags.agentweb import dollars


def window_bounds(period: str, now: datetime) -> tuple[datetime, datetime | None]:
    """Give the calendar window of `period` that holds `now`, in UTC."""
    day = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    match period:
        case Budget.Period.DAY:
            return day, day + timedelta(days=1)
        case Budget.Period.MONTH:
            first = day.replace(day=1)
            return first, (first + timedelta(days=32)).replace(day=1)
        case _:
            return datetime(2000, 1, 1, tzinfo=UTC), None


def open_windows(user_id: int) -> list[BudgetWindow]:
    """Give the user's present windows, made on first use, locked in the order of their ids."""
    now = timezone.now()
    wanted = [
        BudgetWindow(budget=budget, starts_at=starts, ends_at=ends)
        for budget in Budget.objects.filter(user_id=user_id, is_active=True).order_by("pk")
        for starts, ends in (window_bounds(budget.period, now),)
    ]
    if not wanted:
        return []
    BudgetWindow.objects.bulk_create(wanted, ignore_conflicts=True)
    present = Q()
    for row in wanted:
        present |= Q(budget=row.budget_id, starts_at=row.starts_at)
    rows = BudgetWindow.objects.select_for_update(of=("self",)).select_related("budget")
    return list(rows.filter(present).order_by("pk"))


def room(windows: list[BudgetWindow]) -> int | None:
    """Give what may still be held in every window, in micro-dollars; None without a limit."""
    if not windows:
        return None
    return min(_left(window) for window in windows)


def hold_micros(*, windows: list[BudgetWindow], call_id: int, micros: int) -> None:
    """Hold the amount in every window, or raise Refused."""
    for window in windows:
        most = window.budget.limit_micros - F("held_micros") - F("overrun_micros") - micros
        fits = BudgetWindow.objects.filter(pk=window.pk, spent_micros__lte=most)
        if not fits.update(held_micros=F("held_micros") + micros):
            raise over_budget(window, micros)
    Reservation.objects.bulk_create(
        Reservation(call_id=call_id, window=window, micros=micros) for window in windows
    )
    _enter(windows, call_id, LedgerEntry.Kind.RESERVE, micros)


def settle(*, call_id: int, cost_micros: int) -> None:
    """Turn what a call holds into what it cost; a second settlement changes nothing."""
    held = list(
        Reservation.objects.select_for_update(of=("self",))
        .select_related("window")
        .filter(call_id=call_id, is_open=True)
        .order_by("window_id")
    )
    if not held:
        return
    for row in held:
        within = min(cost_micros, row.micros)
        BudgetWindow.objects.filter(pk=row.window_id).update(
            held_micros=F("held_micros") - row.micros,
            spent_micros=F("spent_micros") + within,
            overrun_micros=F("overrun_micros") + cost_micros - within,
        )
    Reservation.objects.filter(pk__in=[row.pk for row in held]).update(is_open=False)
    kind = LedgerEntry.Kind.SETTLE if cost_micros else LedgerEntry.Kind.RELEASE
    _enter([row.window for row in held], call_id, kind, cost_micros)


def over_budget(window: BudgetWindow, micros: int) -> Refused:
    """Say which budget does not allow a call of so much, what is used of it, and until when."""
    limit = window.budget.limit_micros
    kind = {"day": "daily", "month": "monthly", "lifetime": "lifetime"}[window.budget.period]
    ends = window.ends_at
    reset = f" It starts anew on {ends.day} {ends:%B %Y}, UTC." if ends else ""
    return Refused(
        "budget",
        f"The {kind} budget of {dollars(limit)} does not allow another call:"
        f" {dollars(limit - _left(window))} is spent or held, and this call may cost up to"
        f" {dollars(micros)}.{reset}",
    )


def _left(window: BudgetWindow) -> int:
    used = window.spent_micros + window.held_micros + window.overrun_micros
    return window.budget.limit_micros - used


def _enter(windows: list[BudgetWindow], call_id: int, kind: str, micros: int) -> None:
    LedgerEntry.objects.bulk_create(
        LedgerEntry(window=window, call_id=call_id, kind=kind, micros=micros) for window in windows
    )
