"""Compare the sums of closed days with the rows that they sum."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.forms.models import model_to_dict

from conversations.budgets.usage.closed_days import add_up_day
from conversations.db import transact
from conversations.log.chain import lock_site_chain
from conversations.log.findings import DAMAGE, Problem, describe_error
from conversations.models import ClosedDay, PersonDay


def check_closed_days() -> Iterator[Problem]:
    """Yield a problem for each closed day that is not what its calls and turns come to."""
    try:
        for key in list(ClosedDay.objects.order_by("day").values_list("pk", flat=True)):
            # A fork or an erasure may have come between: what differs is read again without one.
            yield from _compare_day(key) and _compare_at_rest(key)
    except DAMAGE as error:
        yield Problem("closedday", "", f"cannot be read: {describe_error(error)}")


@transact
def _compare_at_rest(key: int) -> list[Problem]:
    # Who changes rows of closed days holds the end of the chain until the commit.
    lock_site_chain()
    return _compare_day(key)


def _compare_day(key: int) -> list[Problem]:
    closed = ClosedDay.objects.filter(pk=key, is_current=True).first()
    if closed is None:
        return []
    sums, people = add_up_day(closed.day)
    stored = closed.people.order_by("owner")
    is_equal = [*map(_read, stored)] == [*map(_read, people)]
    is_equal = is_equal and _arrange(closed.sums) == _arrange(sums)
    if is_equal:
        return []
    return [Problem("closedday", str(key), f"is not what {closed.day} comes to")]


def _arrange(sums: dict[str, Any]) -> dict[str, Any]:
    """Return sums in one order: each database has one of its own for names."""
    return {
        name: sorted(rows, key=repr) if isinstance(rows, list) else rows
        for name, rows in sums.items()
    }


def _read(row: PersonDay) -> dict[str, object]:
    return model_to_dict(row, exclude=("id", "closed"))
