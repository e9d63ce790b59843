"""Cost of each day, split by purpose, model, user, group or cost centre.

A person in several groups counts in each, so groups may add up to more than the total.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from django.db.models import Sum
from django.utils.translation import gettext as _

from conversations.budgets.usage.centres import split_by_centre
from conversations.budgets.usage.closed_days import list_closed_costs
from conversations.budgets.usage.days import UtcDay
from conversations.budgets.usage.groups import name_model, name_purpose
from conversations.budgets.usage.site import Site
from conversations.budgets.usage.subjects import Subject, add_subjects, select_keys
from conversations.budgets.usage.sums import filter_calls_within
from conversations.models import User

#: Ways to split the cost, in the order in which pages list them.
WAYS = ("purpose", "model", "user", "group", "centre")

Shares = list[tuple[str, str, int]]


def split_money(found: Site, by: str) -> Shares:
    """Return (day, name, micro-dollars) for one of WAYS."""
    names: Mapping[int | None, tuple[str, ...]]
    match by:
        case "user":
            names = {one.key: (one.name,) for one in found.users}
        case "group":
            names = map_groups(one.key for one in found.users)
        case "centre":
            return split_by_centre(found.centres, found.groups)
        case _:
            name = name_model if by == "model" else name_purpose
            return [(each.day, name(each), each.figures.micros) for each in found.groups]
    return [(day, name, cost) for day, owner, cost in _sum_by_owner(found) for name in names[owner]]


def _sum_by_owner(found: Site) -> list[tuple[str, int, int]]:
    """Return (day, owner, micro-dollars), erased conversations included; two queries."""
    closed = list_closed_costs(found.span, found.rest)
    rows = filter_calls_within(found.rest).annotate(day=UtcDay("sent_at")).order_by()
    sums = rows.values("day", "conversation__owner").annotate(micros=Sum("result__cost_micros"))
    owned = [(str(row["day"]), row["conversation__owner"], row["micros"] or 0) for row in sums]
    return [*closed, *owned] + [(row.day, row.owner, row.figures.micros) for row in found.erased]


def map_groups(keys: Iterable[int | None]) -> defaultdict[int | None, tuple[str, ...]]:
    """Return the names of the groups that people are in now; one query."""
    none = (_("No group"),)
    found: defaultdict[int | None, tuple[str, ...]] = defaultdict(lambda: none)
    wanted = select_keys(key for key in keys if key is not None)
    rows = User.groups.through.objects.filter(user__in=wanted)
    for user, group in rows.order_by("group__name").values_list("user", "group__name"):
        found[user] = (*found.get(user, ()), group)
    return found


def sum_by_group(people: Iterable[Subject]) -> list[Subject]:
    """Add people up by their groups, the most expensive first; one query."""
    rows, members = list(people), defaultdict[str, list[Subject]](list)
    names = map_groups(one.key for one in rows)
    for one in rows:
        for name in names[one.key]:
            members[name].append(one)
    found = (add_subjects(name, members[name]) for name in members)
    return sorted(found, key=lambda one: (-one.figures.micros, one.name))
