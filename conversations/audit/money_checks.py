"""Checks of what money is computed from, each row with its last record, and of what was booked."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Model

from conversations.budgets.booked_differences import list_entries
from conversations.budgets.money_records import COLUMNS, name_table, read_present, read_recorded
from conversations.db import transact
from conversations.log.chain import lock_site_chain
from conversations.log.findings import DAMAGE, Problem, describe_error
from conversations.models import BookedDifference


def check_money_records() -> Iterator[Problem]:
    """Yield the prices, budgets, caps and exemptions that differ from their last record."""
    for table in COLUMNS:
        try:
            yield from _compare_table(table)
        except DAMAGE as error:
            yield Problem(name_table(table), "", f"cannot be read: {describe_error(error)}")


@transact
def _compare_table(table: type[Model]) -> list[Problem]:
    # No change is half committed while the end of the chain is locked.
    lock_site_chain()
    present, recorded = read_present(table), read_recorded(table)
    found = []
    for key in sorted(present.keys() | recorded.keys()):
        is_now, was = present.get(key, ""), recorded.get(key, "")
        if is_now == was:
            continue
        what = "missing: it was deleted off the record" if was else "added off the record"
        if is_now and was:
            what = f"changed: it is {is_now}, and on record {was}"
        found.append(Problem(name_table(table), str(key), what))
    return found


def check_booked_differences() -> Iterator[Problem]:
    """Yield the booked differences that the ledger does not have as often and as large."""
    for key in BookedDifference.objects.order_by("pk").values_list("pk", flat=True):
        try:
            row = BookedDifference.objects.get(pk=key)
            found = [entry.amount for entry in list_entries(row)]
        except DAMAGE as error:
            yield Problem("bookeddifference", str(key), f"cannot be read: {describe_error(error)}")
            continue
        if found != [row.amount] * row.windows:
            words = f"its ledger entries are {found}, and by it {row.windows} of {row.amount}"
            yield Problem("bookeddifference", str(key), words)
