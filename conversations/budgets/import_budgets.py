"""Budgets from a CSV file, in the form in which they are given out.

A line sets one budget: it makes it, changes its limit, percents and note, or switches it off. What
a cell leaves empty stays as it is. What was used keeps its time zone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.admin.models import ADDITION, CHANGE, LogEntry
from django.contrib.auth.models import Group
from django.contrib.contenttypes.models import ContentType

from conversations.budgets.amounts import Unreadable, amount
from conversations.budgets.csv_import import LineRefused, Plan, Row, take
from conversations.budgets.grants import BudgetError, set_limit
from conversations.models import Budget, User
from conversations.rendering.numbers import worth

COLUMNS = (
    "scope", "subject", "kind", "unit", "period", "limit", "time_zone", "soft_percents", "active",
    "note",
)  # fmt: skip
_PLACE = COLUMNS[:5]
_CHOICES = {
    "scope": Budget.Scope.values, "kind": Budget.Kind.values, "unit": Budget.Unit.values,
    "period": Budget.Period.values, "active": ["yes", "no"],
}  # fmt: skip


def take_budgets(*, text: str, actor: User, expected: str = "") -> Plan:
    """Take budgets in, all or none; without what was `expected` it is a preview."""
    return take(text, COLUMNS, lambda rows: _Taker(actor, _active(rows), set()).take, expected)


def _active(rows: list[Row]) -> set[tuple[str, ...]]:
    return {_place(row) for row in rows if row["active"] != "no"}


def _place(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in _PLACE)


@dataclass(frozen=True, slots=True)
class _Taker:
    actor: User
    #: What the file sets, so that an older line that is off says nothing about it; and what is set.
    active: set[tuple[str, ...]]
    done: set[tuple[str, ...]]

    def take(self, row: Row) -> tuple[str, str]:
        for name, choices in _CHOICES.items():
            if row[name] not in choices and (row[name] or name != "active"):
                raise LineRefused(f"{name} is one of {', '.join(choices)}, not {row[name]!r}.")
        is_off, place = row["active"] == "no", _place(row)
        if is_off and place in self.active:
            return "same", f"{_named(row)}: another line sets it"
        if place in self.done and is_off:
            return "same", f"{_named(row)}: off already"
        if place in self.done:
            raise LineRefused(f"{_named(row)}: another line sets the same budget.")
        self.done.add(place)
        return self._set(row, is_off=is_off)

    def _set(self, row: Row, *, is_off: bool) -> tuple[str, str]:
        where = {name: row[name] for name in ("kind", "unit", "period")} | _subject(row)
        scope = {"user": None, "group": None} | where
        before = Budget.objects.filter(scope=row["scope"], is_active=True, **scope).first()
        if is_off and before is None:
            return "same", f"{_named(row)}: off already"
        limit = None if is_off else _limit(row, before)
        more: dict[str, Any] = {
            "zone": row["time_zone"] or None,
            "percents": row["soft_percents"] or None,
            "note": row["note"] or None,
        }
        try:
            after = set_limit(limit=limit, **where, **({} if is_off else more))
        except BudgetError as error:
            raise LineRefused(f"{_named(row)}: {error}") from error
        if before is not None and _facts(before) == _facts(after):
            return "same", f"{_named(row)}: {_shown(after)}, as before"
        return self._told(row, before, after)

    def _told(self, row: Row, before: Budget | None, after: Budget) -> tuple[str, str]:
        if before is None:
            verb, words = "create", f"{_shown(after)}, new"
        elif not after.is_active:
            verb, words = "off", f"{_shown(before)}, switched off"
        else:
            verb, words = "change", f"{_shown(before)} → {_shown(after)}"
        LogEntry.objects.create(
            user=self.actor,
            content_type=ContentType.objects.get_for_model(Budget),
            object_id=str(after.pk),
            object_repr=str(after)[:200],
            action_flag=ADDITION if before is None else CHANGE,
            change_message=f"From a CSV file: {words}",
        )
        return verb, f"{_named(row)}: {words}"


def _subject(row: Row) -> dict[str, Any]:
    name = row["subject"]
    match row["scope"]:
        case "site":
            if name:
                raise LineRefused(f"A budget of the site has no subject, not {name!r}.")
            return {}
        case "group":
            group = Group.objects.filter(name=name).first()
            if group is None:
                raise LineRefused(f"There is no group {name!r}.")
            return {"group": group}
        case _:
            user = User.objects.filter(username=name).first()
            if user is None:
                raise LineRefused(f"There is no user {name!r}.")
            return {"user": user}


def _limit(row: Row, before: Budget | None) -> int:
    if before is not None and not row["limit"]:
        return before.limit
    try:
        return amount(row["limit"], row["unit"])
    except Unreadable as error:
        raise LineRefused(f"limit: {error}.") from error


def _named(row: Row) -> str:
    return " ".join(filter(None, _place(row)))


def _facts(budget: Budget) -> tuple[object, ...]:
    return budget.limit, budget.soft_percents, budget.note, budget.is_active


def _shown(budget: Budget) -> str:
    note = f", “{budget.note}”" if budget.note else ""
    return f"{worth(budget.limit, budget.unit)} (told at {budget.soft_percents or '–'}{note})"
