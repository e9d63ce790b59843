"""What calls came to, by any of day, model, purpose, cost centre, person and group.

Sums without people and cost centres come from the closed days and the calls after them; the others
from the calls of the whole span, because closed days know no model of either. Calls of erased
conversations have no purpose any more. A person in several groups counts in each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from django.db.models import QuerySet

from conversations.budgets.usage.closed_days import read_closed_days
from conversations.budgets.usage.days import Span, UtcDay
from conversations.budgets.usage.erased import list_erased_within
from conversations.budgets.usage.groups import add_erased, group_calls
from conversations.budgets.usage.sums import SUMS, Figures, filter_calls_within
from conversations.models import ApiCall, CostCentre, User

DIMENSIONS = ("day", "model", "purpose", "person", "group", "cost_centre")
#: Dimensions that need each call.
OF_CALLS = frozenset({"person", "group", "cost_centre"})
_FIELDS = {
    "day": "day", "model": "model", "purpose": "purpose", "owner": "conversation__owner",
    "cost_centre": "cost_centre",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Part:
    """Some calls with the values of the dimensions that were asked for; the others are ""."""

    day: str
    model: str
    purpose: str
    owner: int | None
    figures: Figures
    centre: int | None = None


def sum_by(span: Span, by: Collection[str]) -> list[tuple[dict[str, str], Figures]]:
    """Return the figures of each combination of values that occurs, in the order of `by`."""
    parts = list(_read_calls(span, by) if OF_CALLS & {*by} else _read_all(span))
    names, groups = _name_owners(parts, by)
    codes = _list_codes() if "cost_centre" in by else {}
    found: defaultdict[tuple[str, ...], Figures] = defaultdict(Figures)
    for part in parts:
        values = {"day": part.day, "model": part.model, "purpose": part.purpose}
        values["person"] = names.get(part.owner, "")
        values["cost_centre"] = codes.get(part.centre, "")
        for group in groups.get(part.owner, [""]):
            key = tuple((values | {"group": group})[each] for each in by)
            found[key] += part.figures
    return [(dict(zip(by, key, strict=True)), found[key]) for key in sorted(found)]


def _read_all(span: Span) -> Iterator[_Part]:
    closed, rest = read_closed_days(span)
    groups = (*closed.groups, *group_calls(filter_calls_within(rest), ()))
    for one in add_erased(groups, list_erased_within(span)):
        yield _Part(one.day, one.model, one.purpose, None, one.figures)


def _read_calls(span: Span, by: Collection[str]) -> Iterator[_Part]:
    asked = [name for name in ("day", "model", "purpose", "cost_centre") if name in by]
    rows: QuerySet[ApiCall] = filter_calls_within(span).annotate(day=UtcDay("sent_at"))
    fields = [_FIELDS[name] for name in (*asked, "owner")]
    for row in rows.values(*fields).order_by().annotate(**SUMS):
        day, model, purpose = (str(row.get(name, "")) for name in ("day", "model", "purpose"))
        owner, centre = row["conversation__owner"], row.get("cost_centre")
        yield _Part(day, model, purpose, owner, Figures.of(row), centre)
    for gone in list_erased_within(span):
        yield _Part(gone.day, gone.model, "", gone.owner, gone.figures, gone.centre)


def _list_codes() -> dict[int | None, str]:
    codes: dict[int | None, str] = {}
    codes.update(CostCentre.objects.values_list("pk", "code"))
    return codes


def _name_owners(
    parts: Iterable[_Part], by: Collection[str]
) -> tuple[dict[int | None, str], dict[int | None, list[str]]]:
    """Return the name and the groups of each owner, of those that were asked for."""
    keys = {part.owner for part in parts if part.owner is not None}
    names: dict[int | None, str] = {}
    groups: defaultdict[int | None, list[str]] = defaultdict(list)
    if "person" in by:
        names.update(User.objects.filter(pk__in=keys).values_list("pk", "username"))
    if "group" in by:
        members = User.groups.through.objects.filter(user__in=keys)
        for user, group in members.values_list("user", "group__name"):
            groups[user].append(group)
    return names, dict(groups)
