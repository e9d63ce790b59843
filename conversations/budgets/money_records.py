"""The record of what money is computed from: prices, budgets, caps of turns, and exemptions.

Each change of such a row appends the row as it is from then on to the site's chain, so that
`manage.py verify` finds a row that was changed in another way. Saving and deleting by the ORM are
seen by signals; code that updates rows by a query calls `record_rows`. Rows that were there before
the first record are recorded after the migration that brought the table. What changes within
`changed_by` is recorded with that person and reason.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.models import Model
from django.db.models.signals import post_delete, post_save

from conversations.db import transact
from conversations.log.chain import append_rows, lock_site_chain
from conversations.models import Budget, ModelPrice, MoneyRecord, TurnCap, User

#: The columns of each table that decide about money; notes and sources decide nothing.
COLUMNS: dict[type[Model], tuple[str, ...]] = {
    ModelPrice: (
        "model_id", "kind", "above_tokens", "micros_per_million", "effective_from", "effective_to",
    ),
    Budget: (
        "scope", "group_id", "user_id", "kind", "unit", "period", "time_zone", "limit",
        "soft_percents", "is_active", "model",
    ),
    TurnCap: ("group_id", "user_id", "micros", "rounds", "tool_calls", "seconds"),
    User: ("is_exempt",),
}  # fmt: skip
#: The person who changes rows now, by key, and the reason.
_changed_by: ContextVar[tuple[int | None, str]] = ContextVar("changed_by", default=(None, ""))


@contextmanager
def changed_by(actor: int | None, reason: str = "") -> Iterator[None]:
    """Record changes made within this block as those of a person, by key."""
    before = _changed_by.get()
    token = _changed_by.set((actor or before[0], reason or before[1]))
    try:
        yield
    finally:
        _changed_by.reset(token)


#: Columns that records of before say nothing of: left out where they have this value.
_LATER = {"model": ""}


def name_table(table: type[Model]) -> str:
    return str(table._meta.model_name)


def read_present(table: type[Model], keys: Collection[int] | None = None) -> dict[int, str]:
    """Return the rows of a table by their keys, each as the text of its record."""
    rows = table._default_manager.order_by("pk")
    if table is User:
        rows = rows.filter(is_exempt=True)
    if keys is not None:
        rows = rows.filter(pk__in=keys)
    return {row.pop("pk"): _write(row) for row in rows.values("pk", *COLUMNS[table])}


def read_recorded(table: type[Model], keys: Collection[int] | None = None) -> dict[int, str]:
    """Return the last record of each row; "" for one that was deleted."""
    rows = MoneyRecord.objects.filter(table=name_table(table)).order_by("link")
    if keys is not None:
        rows = rows.filter(key__in=keys)
    return dict(rows.values_list("key", "content"))


@transact
def record_rows(table: type[Model], keys: Collection[int]) -> None:
    """Record these rows as they are now, where that is new."""
    present, recorded = read_present(table, keys), read_recorded(table, keys)
    _append(
        MoneyRecord(table=name_table(table), key=key, content=present.get(key, ""))
        for key in keys
        if present.get(key, "") != recorded.get(key, "")
    )


@transact
def record_first(using: str = "default", **_: Any) -> None:
    """Record every row, unless there are records; runs after each migration."""
    if connection.alias != using:
        return
    if MoneyRecord._meta.db_table not in connection.introspection.table_names():
        return
    if MoneyRecord.objects.exists():
        return
    _append(
        MoneyRecord(table=name_table(table), key=key, content=content)
        for table in COLUMNS
        for key, content in read_present(table).items()
    )


def watch_rows() -> None:
    """Record rows that are saved or deleted from now on."""
    for table in COLUMNS:
        name = f"agentweb-record-{name_table(table)}"
        post_save.connect(_record_saved, sender=table, dispatch_uid=f"{name}-saved")
        post_delete.connect(_record_deleted, sender=table, dispatch_uid=f"{name}-deleted")


def _record_saved(
    sender: type[Model], instance: Any, update_fields: Collection[str] | None, **said: Any
) -> None:
    if said["raw"] or (update_fields is not None and not {*update_fields} & _names(sender)):
        return
    if isinstance(instance, User) and said["created"] and not instance.is_exempt:
        return
    record_rows(sender, [instance.pk])


def _record_deleted(sender: type[Model], instance: Any, **_: Any) -> None:
    record_rows(sender, [instance.pk])


def _names(table: type[Model]) -> set[str]:
    """Return the columns, and the relations that they store, as `save` names them."""
    return {name for column in COLUMNS[table] for name in (column, column.removesuffix("_id"))}


def _append(rows: Iterator[MoneyRecord]) -> None:
    if found := list(rows):
        for row in found:
            row.actor_id, row.reason = _changed_by.get()
        append_rows(found, lock_site_chain())


def _write(row: dict[str, Any]) -> str:
    said = {name: value for name, value in row.items() if _LATER.get(name, ...) != value}
    return json.dumps(said, default=_write_moment, sort_keys=True, separators=(",", ":"))


def _write_moment(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="microseconds")
