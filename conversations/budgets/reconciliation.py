"""Reconciliation: recompute windows from their reservations and ledger entries.

The database adds them up while the window is locked, which every movement locks first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import BigIntegerField, Exists, F, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce, Least

from conversations.budgets.units import UNITS
from conversations.db import transact
from conversations.log.findings import DAMAGE, Problem, describe_error
from conversations.models import Budget, BudgetWindow, LedgerEntry, Reservation
from conversations.models.catalogue import is_model_in
from conversations.models.periods import compute_bounds

_FINAL = ("settle", "release")


def check_windows() -> Iterator[Problem]:
    """Recompute every window and yield what differs."""
    yield from _find_orphans()
    for key in BudgetWindow.objects.order_by("pk").values_list("pk", flat=True):
        try:
            yield from check_window(key)
        except DAMAGE as error:
            yield Problem("budgetwindow", str(key), f"cannot be read: {describe_error(error)}")


@transact
def check_window(key: int) -> list[Problem]:
    """Compare one window's totals with its entries, and the entries with their calls."""
    window = BudgetWindow.objects.select_for_update().get(pk=key)
    totals = compute_totals(window)
    problems = [
        Problem("budgetwindow", str(key), f"{name} is {getattr(window, name)}, not {totals[name]}")
        for name in totals
        if getattr(window, name) != totals[name]
    ]
    if what := _describe_misplacement(window):
        problems.append(Problem("budgetwindow", str(key), what))
    for row in _find_wrong_reservations(window)[:20]:
        what = "its ledger entries say something else"
        problems.append(Problem("reservation", str(row.pk), what))
    for entry in _find_wrong_entries(window)[:20]:
        what = f"{entry.kind} of {entry.amount} has no reservation or result that says so"
        problems.append(Problem("ledgerentry", str(entry.pk), what))
    return problems


def _select_entry_amount(kinds: tuple[str, ...]) -> Subquery:
    entries = LedgerEntry.objects.filter(
        window=OuterRef("window"), call=OuterRef("call"), kind__in=kinds
    )
    return Subquery(entries.values("amount")[:1])


def compute_totals(window: BudgetWindow) -> dict[str, int]:
    """Return the recomputed totals of the window: spent, held and overrun, and its last limit.

    Entries of before limits were recorded say none.
    """
    rows = Reservation.objects.filter(window=window).annotate(cost=_select_entry_amount(_FINAL))
    closed = Q(is_open=False, cost__isnull=False)
    integer = BigIntegerField()
    within = Least(F("cost"), F("amount"), output_field=integer)
    above = F("cost") - within
    sums = rows.aggregate(
        held=Sum("amount", filter=Q(is_open=True)),
        spent=Sum(within, filter=closed),
        overrun=Sum(above, filter=closed, output_field=integer),
    )
    adjusted = LedgerEntry.objects.filter(window=window, kind="adjust")
    found = {name: int(total or 0) for name, total in sums.items()}
    corrected = adjusted.aggregate(sum=Sum("amount"), over=Sum("overrun"))
    over = int(corrected["over"] or 0)
    found["spent"] += int(corrected["sum"] or 0) - over
    found["overrun"] += over
    entries = LedgerEntry.objects.filter(window=window)
    # Entries are written while the window is locked: in the order of their keys.
    last = entries.exclude(limit=None).order_by("-pk").values_list("limit", flat=True).first()
    if last is not None or not entries.exists():
        found["limit"] = last or 0
    return found


def _find_orphans() -> Iterator[Problem]:
    """Yield the windows that entries or reservations name and that are gone."""
    rows: tuple[QuerySet[Any], ...] = (LedgerEntry.objects.all(), Reservation.objects.all())
    there = BudgetWindow.objects.filter(pk=OuterRef("window_id"))
    gone = {
        key
        for some in rows
        for key in some.exclude(Exists(there)).values_list("window_id", flat=True)
    }
    for key in sorted(gone):
        yield Problem("budgetwindow", str(key), "missing: entries or reservations name it")


def _describe_misplacement(window: BudgetWindow) -> str:
    """Say how the window differs from its budget's calendar or member; "" if it does not."""
    budget = window.budget
    bounds = compute_bounds(budget.period, budget.time_zone, window.starts_at)
    if bounds != (window.starts_at, window.ends_at):
        return f"it is not the {budget.period} of its budget"
    if (window.user_id is None) != (budget.kind == Budget.Kind.POOL):
        return "it has a member, and its budget is a pool, or the other way round"
    if budget.user_id not in (None, window.user_id):
        return "it is of another person than its budget"
    calls = Reservation.objects.filter(window=window)
    if window.user_id and calls.exclude(call__conversation__owner=window.user_id).exists():
        return "calls of another person are booked to it"
    if budget.model:
        names = calls.values_list("call__model", flat=True).distinct()
        if not all(is_model_in(budget.model, name) for name in names):
            return "calls of another model are booked to it"
    return ""


def _find_wrong_reservations(window: BudgetWindow) -> QuerySet[Reservation]:
    """Return the reservations whose entries are missing or differ."""
    rows = Reservation.objects.filter(window=window)
    rows = rows.annotate(
        cost=_select_entry_amount(_FINAL), reserved=_select_entry_amount(("reserve",))
    )
    return rows.filter(
        Q(reserved=None)
        | ~Q(reserved=F("amount"))
        | Q(is_open=False, cost=None)
        | Q(is_open=True, cost__isnull=False)
    ).order_by("pk")


def _find_wrong_entries(window: BudgetWindow) -> QuerySet[LedgerEntry]:
    """Return entries without a reservation, and settlements that differ from the result."""
    held = Reservation.objects.filter(window=window).values("call")
    entries = LedgerEntry.objects.filter(window=window).exclude(kind="adjust")
    final = Q(kind__in=_FINAL, call__result__isnull=False)
    wrong = UNITS[window.budget.unit].wrong_settlement
    return entries.filter(
        Q(call=None) | ~Q(call__in=held) | (final & wrong) | Q(kind="release", amount__gt=0)
    ).order_by("pk")


def has_drift() -> bool:
    """Return whether any window holds another amount than its open reservations."""
    held_now = Reservation.objects.filter(is_open=True)
    mine = held_now.filter(window=OuterRef("pk")).order_by().values("window")
    sums = mine.annotate(sum=Sum("amount")).values("sum")
    rows = BudgetWindow.objects.filter(Q(held__gt=0) | Q(pk__in=held_now.values("window")))
    return rows.annotate(due=Coalesce(Subquery(sums), 0)).exclude(held=F("due")).exists()
