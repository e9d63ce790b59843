"""Reconciliation: recompute windows from their reservations and ledger entries.

The database adds them up while the window is locked, which every movement locks first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import BigIntegerField, Exists, F, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce, Least

from conversations.budgets.units import UNITS
from conversations.db import transact
from conversations.log.findings import DAMAGE, Problem, describe_error, split_chunks
from conversations.models import Budget, BudgetWindow, LedgerEntry, Reservation
from conversations.models.catalogue import is_model_in
from conversations.models.periods import compute_bounds

_FINAL = ("settle", "release")
#: Rows of a window that are named at most, of each table.
MOST = 20


def check_windows() -> Iterator[Problem]:
    """Recompute every window and yield what differs."""
    yield from _find_orphans()
    keys = list(BudgetWindow.objects.order_by("pk").values_list("pk", flat=True))
    for some in split_chunks(keys):
        yield from _check_readable(some)


def _check_readable(keys: list[int]) -> Iterator[Problem]:
    """Check some windows at once, or where one of them cannot be read, each alone."""
    try:
        yield from _check_some(keys)
    except DAMAGE as error:
        if len(keys) > 1:
            for key in keys:
                yield from _check_readable([key])
        else:
            what = f"cannot be read: {describe_error(error)}"
            yield Problem("budgetwindow", str(keys[0]), what)


@transact
def _check_some(keys: list[int]) -> list[Problem]:
    """Compare windows' totals with their entries, and the entries with their calls.

    It takes the same number of queries for one window and for many.
    """
    rows = BudgetWindow.objects.select_for_update(of=("self",)).select_related("budget")
    windows = list(rows.filter(pk__in=keys).order_by("pk"))
    totals, misplaced = compute_totals(keys), _find_misplaced(keys)
    reservations, entries = _find_wrong_reservations(keys), _find_wrong_entries(keys)
    found = []
    for window in windows:
        due, key = totals[window.pk], str(window.pk)
        for name, amount in due.items():
            if getattr(window, name) != amount:
                what = f"{name} is {getattr(window, name)}, not {amount}"
                found.append(Problem("budgetwindow", key, what))
        if what := _describe_misplacement(window, misplaced.get(window.pk, frozenset())):
            found.append(Problem("budgetwindow", key, what))
        found += reservations.get(window.pk, []) + entries.get(window.pk, [])
    return found


def _select_entry_amount(kinds: tuple[str, ...]) -> Subquery:
    entries = LedgerEntry.objects.filter(
        window=OuterRef("window"), call=OuterRef("call"), kind__in=kinds
    )
    return Subquery(entries.values("amount")[:1])


def compute_totals(keys: Collection[int]) -> dict[int, dict[str, int]]:
    """Return the recomputed totals of windows: spent, held and overrun, and the last limit.

    Entries of before limits were recorded say none. Nor does a window without entries, in which
    nothing was held: its limit is of when it was made.
    """
    rows = Reservation.objects.filter(window__in=keys).annotate(cost=_select_entry_amount(_FINAL))
    closed = Q(is_open=False, cost__isnull=False)
    integer = BigIntegerField()
    within = Least(F("cost"), F("amount"), output_field=integer)
    sums = {
        "held": Sum("amount", filter=Q(is_open=True)),
        "spent": Sum(within, filter=closed),
        "overrun": Sum(F("cost") - within, filter=closed, output_field=integer),
    }
    found = {key: dict.fromkeys(sums, 0) for key in keys}
    for key, *amounts in rows.order_by().values_list("window").annotate(**sums):
        found[key] = dict(zip(sums, (int(amount or 0) for amount in amounts), strict=True))
    adjusted = LedgerEntry.objects.filter(window__in=keys, kind="adjust").order_by()
    corrected = adjusted.values_list("window").annotate(sum=Sum("amount"), over=Sum("overrun"))
    for key, amount, over in corrected:
        found[key]["spent"] += int(amount) - int(over)
        found[key]["overrun"] += int(over)
    for key, limit in _list_limits(keys):
        found[key]["limit"] = limit
    return found


def _list_limits(keys: Collection[int]) -> Iterator[tuple[int, int]]:
    """Yield windows and their last limit; none where no entry says any."""
    entries = LedgerEntry.objects.filter(window=OuterRef("pk")).exclude(limit=None)
    # Entries are written while the window is locked: in the order of their keys.
    last = Subquery(entries.order_by("-pk").values("limit")[:1])
    rows = BudgetWindow.objects.filter(pk__in=keys).order_by().annotate(last=last)
    yield from rows.exclude(last=None).values_list("pk", "last")


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


def _find_misplaced(keys: Collection[int]) -> dict[int, frozenset[str]]:
    """Return for windows whose calls are of others what they are of: "person", "model"."""
    rows = Reservation.objects.filter(window__in=keys).order_by()
    strange = rows.filter(window__user__isnull=False).exclude(
        call__conversation__owner=F("window__user")
    )
    found = defaultdict[int, set[str]](set)
    for key in strange.values_list("window", flat=True).distinct():
        found[key].add("person")
    names = rows.exclude(window__budget__model="").values_list(
        "window", "window__budget__model", "call__model"
    )
    for key, model, name in names.distinct():
        if not is_model_in(model, name):
            found[key].add("model")
    return {key: frozenset(what) for key, what in found.items()}


def _describe_misplacement(window: BudgetWindow, misplaced: frozenset[str]) -> str:
    """Say how the window differs from its budget's calendar or member; "" if it does not."""
    budget = window.budget
    bounds = compute_bounds(budget.period, budget.time_zone, window.starts_at)
    if bounds != (window.starts_at, window.ends_at):
        return f"it is not the {budget.period} of its budget"
    if (window.user_id is None) != (budget.kind == Budget.Kind.POOL):
        return "it has a member, and its budget is a pool, or the other way round"
    if budget.user_id not in (None, window.user_id):
        return "it is of another person than its budget"
    if "person" in misplaced:
        return "calls of another person are booked to it"
    return "calls of another model are booked to it" if "model" in misplaced else ""


def _find_wrong_reservations(keys: Collection[int]) -> dict[int, list[Problem]]:
    """Return for each window the reservations whose entries are missing or differ."""
    rows = Reservation.objects.filter(window__in=keys).annotate(
        cost=_select_entry_amount(_FINAL), reserved=_select_entry_amount(("reserve",))
    )
    wrong = rows.filter(
        Q(reserved=None)
        | ~Q(reserved=F("amount"))
        | Q(is_open=False, cost=None)
        | Q(is_open=True, cost__isnull=False)
    )
    found = defaultdict[int, list[Problem]](list)
    for window, key in wrong.order_by("pk").values_list("window", "pk").iterator():
        if len(found[window]) < MOST:
            what = "its ledger entries say something else"
            found[window].append(Problem("reservation", str(key), what))
    return found


def _find_wrong_entries(keys: Collection[int]) -> dict[int, list[Problem]]:
    """Return entries without a reservation, and settlements that differ from the result."""
    held = Reservation.objects.filter(window=OuterRef("window"), call=OuterRef("call"))
    entries = LedgerEntry.objects.filter(window__in=keys).exclude(kind="adjust")
    final = Q(kind__in=_FINAL, call__result__isnull=False)
    units = (Q(window__budget__unit=unit.name) & unit.wrong_settlement for unit in UNITS.values())
    wrong = entries.filter(
        Q(call=None)
        | ~Q(Exists(held))
        | (final & reduce(or_, units))
        | Q(kind="release", amount__gt=0)
    )
    found = defaultdict[int, list[Problem]](list)
    for entry in wrong.order_by("pk").iterator():
        if len(found[entry.window_id]) < MOST:
            what = f"{entry.kind} of {entry.amount} has no reservation or result that says so"
            found[entry.window_id].append(Problem("ledgerentry", str(entry.pk), what))
    return found


def has_drift() -> bool:
    """Return whether any window holds another amount than its open reservations."""
    held_now = Reservation.objects.filter(is_open=True)
    mine = held_now.filter(window=OuterRef("pk")).order_by().values("window")
    sums = mine.annotate(sum=Sum("amount")).values("sum")
    rows = BudgetWindow.objects.filter(Q(held__gt=0) | Q(pk__in=held_now.values("window")))
    return rows.annotate(due=Coalesce(Subquery(sums), 0)).exclude(held=F("due")).exists()
