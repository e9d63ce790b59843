"""Checks of what money is computed from: each row is compared with the last record of it."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Model

from conversations.budgets.money_records import COLUMNS, name_table, read_present, read_recorded
from conversations.db import transact
from conversations.log.chain import lock_site_chain
from conversations.log.findings import DAMAGE, Problem, describe_error


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
