"""Money: what a window says is what its reservations and ledger entries say.

Added up by the database under the window's lock, which every movement of money takes first.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.db import transaction
from django.db.models import BigIntegerField, F, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Least

from conversations.models import BudgetWindow, LedgerEntry, Reservation
from conversations.services.audit.report import Problem
from conversations.services.audit.rows import DAMAGE, words

_FINAL = ("settle", "release")
_TOTALS = ("spent_micros", "held_micros", "overrun_micros")


def check_accounts() -> Iterator[Problem]:
    """Recompute every window."""
    for key in BudgetWindow.objects.order_by("pk").values_list("pk", flat=True):
        try:
            yield from check_window(key)
        except DAMAGE as error:
            yield Problem("budgetwindow", str(key), f"cannot be read: {words(error)}")


@transaction.atomic
def check_window(key: int) -> list[Problem]:
    """Compare one window's totals with its entries, and those with their calls."""
    window = BudgetWindow.objects.select_for_update().get(pk=key)
    due = _due(window)
    problems = [
        Problem("budgetwindow", str(key), f"{name} is {getattr(window, name)}, not {due[name]}")
        for name in _TOTALS
        if getattr(window, name) != due[name]
    ]
    for row in _odd_reservations(window)[:20]:
        what = "its ledger entries say something else"
        problems.append(Problem("reservation", str(row.pk), what))
    for entry in _odd_entries(window)[:20]:
        what = f"{entry.kind} of {entry.micros} has no reservation or result that says so"
        problems.append(Problem("ledgerentry", str(entry.pk), what))
    return problems


def _entered(kinds: tuple[str, ...]) -> Subquery:
    entries = LedgerEntry.objects.filter(
        window=OuterRef("window"), call=OuterRef("call"), kind__in=kinds
    )
    return Subquery(entries.values("micros")[:1])


def _due(window: BudgetWindow) -> dict[str, int]:
    """Add up what the window should say."""
    rows = Reservation.objects.filter(window=window).annotate(cost=_entered(_FINAL))
    closed = Q(is_open=False, cost__isnull=False)
    whole = BigIntegerField()
    within = Least(F("cost"), F("micros"), output_field=whole)
    above = F("cost") - within
    sums = rows.aggregate(
        held_micros=Sum("micros", filter=Q(is_open=True)),
        spent_micros=Sum(within, filter=closed),
        overrun_micros=Sum(above, filter=closed, output_field=whole),
    )
    adjusted = LedgerEntry.objects.filter(window=window, kind="adjust").aggregate(sum=Sum("micros"))
    due = {name: int(total or 0) for name, total in sums.items()}
    return due | {"spent_micros": due["spent_micros"] + int(adjusted["sum"] or 0)}


def _odd_reservations(window: BudgetWindow) -> QuerySet[Reservation]:
    """Find reservations whose entries are missing or differ."""
    rows = Reservation.objects.filter(window=window)
    rows = rows.annotate(cost=_entered(_FINAL), reserved=_entered(("reserve",)))
    return rows.filter(
        Q(reserved=None)
        | ~Q(reserved=F("micros"))
        | Q(is_open=False, cost=None)
        | Q(is_open=True, cost__isnull=False)
    ).order_by("pk")


def _odd_entries(window: BudgetWindow) -> QuerySet[LedgerEntry]:
    """Find entries that no reservation has, and settlements that are not the call's cost."""
    held = Reservation.objects.filter(window=window).values("call")
    entries = LedgerEntry.objects.filter(window=window).exclude(kind="adjust")
    final = Q(kind__in=_FINAL, call__result__cost_micros__isnull=False)
    return entries.filter(
        Q(call=None)
        | ~Q(call__in=held)
        | (final & ~Q(micros=F("call__result__cost_micros")))
        | Q(kind="release", micros__gt=0)
    ).order_by("pk")
