"""Reconciliation: recompute windows from their reservations and ledger entries.

The database adds them up while the window is locked, which every movement locks first.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import BigIntegerField, F, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce, Least

from conversations.budgets.units import UNITS
from conversations.db import transact
from conversations.log.findings import DAMAGE, Problem, describe_error
from conversations.models import BudgetWindow, LedgerEntry, Reservation

_FINAL = ("settle", "release")
_TOTALS = ("spent", "held", "overrun")


def check_windows() -> Iterator[Problem]:
    """Recompute every window and yield what differs."""
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
        for name in _TOTALS
        if getattr(window, name) != totals[name]
    ]
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
    """Return the recomputed totals of the window: spent, held and overrun."""
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
    corrected = adjusted.aggregate(sum=Sum("amount"))["sum"]
    return found | {"spent": found["spent"] + int(corrected or 0)}


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
