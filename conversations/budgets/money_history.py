"""The records of prices, budgets, caps and exemptions as people read them: what changed to what."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group
from django.db.models import Model, OuterRef, QuerySet, Subquery
from django.utils.translation import gettext as _

from conversations.budgets.money_records import COLUMNS, name_table
from conversations.budgets.units import UNITS, show_amount
from conversations.models import MoneyRecord, User
from conversations.models.budgets import BudgetUnit
from conversations.rendering.numbers import write_number

_TABLES = {name_table(table): table for table in COLUMNS}
_OF_USER = name_table(User)
#: Columns of micro-dollars; a limit is in the unit of its budget.
_MICROS = ("micros", "micros_per_million")
Values = Mapping[str, Any]
#: The names of people and groups by the column that has their key.
Names = Mapping[str, Mapping[int, str]]
#: Stands for what of a record is damaged.
DAMAGED = "\ufffd"


@dataclass(frozen=True, slots=True)
class Step:
    """A value of a row before and after a change; "–" for none."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Change:
    """One record: of which table and whose row, what people call it, and what changed of it."""

    table: str
    subject: str
    verb: str
    steps: tuple[Step, ...]


def list_tables() -> list[tuple[str, str]]:
    """List the tables that are on record, by name and as people call them."""
    return [(name, str(table._meta.verbose_name_plural)) for name, table in _TABLES.items()]


def filter_history() -> QuerySet[MoneyRecord]:
    """Return the records, each with the one before it of the same row as `before`."""
    earlier = MoneyRecord.objects.filter(
        table=OuterRef("table"), key=OuterRef("key"), link__lt=OuterRef("link")
    )
    before = Subquery(earlier.order_by("-link").values("content")[:1])
    return MoneyRecord.objects.annotate(before=before)


def describe_changes(records: Sequence[Any]) -> list[Change]:
    """Describe records that `filter_history` has read; two queries."""
    read = [(_read(row.before), _read(row.content)) for row in records]
    names = _read_names(records, [values for pair in read for values in pair if values])
    return [
        _describe(row, before, after, names)
        for row, (before, after) in zip(records, read, strict=True)
    ]


def _read(text: str | None) -> dict[str, Any] | None:
    """Return the values of a row, none where there is no row; None where they are damaged."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _read_names(records: Sequence[Any], contents: Iterable[Values]) -> Names:
    found = list(contents)
    people = {row.key for row in records if row.table == _OF_USER}
    people |= {one["user_id"] for one in found if one.get("user_id")}
    groups = {one["group_id"] for one in found if one.get("group_id")}
    users = User.objects.filter(pk__in=people).values_list("pk", "username")
    teams = Group.objects.filter(pk__in=groups).values_list("pk", "name")
    return {"user_id": dict(users), "group_id": dict(teams)}


def _describe(row: Any, before: Values | None, after: Values | None, names: Names) -> Change:
    table = _TABLES.get(row.table)
    if table is None:
        return Change(row.table, str(row.key), "", ())
    if before is None or after is None:
        step = Step(DAMAGED, DAMAGED, DAMAGED)
        return Change(str(table._meta.verbose_name), str(row.key), DAMAGED, (step,))
    verb = _("deleted") if not after else _("changed") if before else _("added")
    subject = _name_subject(row, after or before, names)
    return Change(
        str(table._meta.verbose_name), subject, verb, _list_steps(table, before, after, names)
    )


def _name_subject(row: Any, values: Values, names: Names) -> str:
    if row.table == _OF_USER:
        return names["user_id"].get(row.key, str(row.key))
    if "model_id" in values:
        return str(values["model_id"])
    for column, known in names.items():
        if key := values.get(column):
            return known.get(key, str(key))
    return _("the site")


def _list_steps(
    table: type[Model], before: Values, after: Values, names: Names
) -> tuple[Step, ...]:
    return tuple(
        Step(
            str(_find_field(table, name).verbose_name),
            _show(table, name, before, names),
            _show(table, name, after, names),
        )
        for name in COLUMNS[table]
        if before.get(name) != after.get(name)
    )


def _find_field(table: type[Model], column: str) -> Any:
    return table._meta.get_field(column.removesuffix("_id"))


def _show(table: type[Model], name: str, values: Values, names: Names) -> str:
    """Write one value as people read it; times are in UTC."""
    value, choices = values.get(name), _find_field(table, name).choices
    match value:
        case None | "":
            return "–"
        case bool():
            return _("yes") if value else _("no")
        case int() if name in names:
            return names[name].get(value, str(value))
        case int() if name in _MICROS:
            return show_amount(value, BudgetUnit.MONEY)
        case int() if name == "limit" and values.get("unit") in UNITS:
            return show_amount(value, values["unit"])
        case int():
            return write_number(value)
        case str() if choices:
            return str(dict(choices).get(value, value))
    is_time = name.startswith("effective_")
    return f"{value[:16].replace('T', ' ')} UTC" if is_time else str(value)
