"""Triggers that make the append-only tables append-only, on PostgreSQL and SQLite alike.

They are (re)installed after every migration, because SQLite drops a table's triggers when a
migration rebuilds it. The one door is `erasing()`: on PostgreSQL a setting of the session, on
SQLite an SQL function that only our connections have, so a plain `sqlite3` shell is refused too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from conversations import models
from conversations.models import AppendOnly

_DOOR = "agentweb_erasing"
_PG_FUNCTION = f"""
CREATE OR REPLACE FUNCTION {_DOOR}_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('agentweb.erasing', true) = 'on' THEN
    IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
    IF TG_OP = 'TRUNCATE' THEN RETURN NULL; END IF;
  END IF;
  RAISE EXCEPTION 'table % is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
"""


def guarded_tables() -> list[str]:
    """Name every append-only table."""
    classes = (getattr(models, name) for name in models.__all__)
    return sorted(
        kind._meta.db_table
        for kind in classes
        if isinstance(kind, type) and issubclass(kind, AppendOnly) and not kind._meta.abstract
    )


def install_guards(using: str = "default", **_: Any) -> None:
    """Put the triggers on every append-only table there is; repeating it changes nothing."""
    if connection.alias != using:
        return
    # Between two migrations, forward or back, a table may not be there yet or any more.
    present = set(connection.introspection.table_names())
    tables = [table for table in guarded_tables() if table in present]
    statements = _postgresql(tables) if connection.vendor == "postgresql" else _sqlite(tables)
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def missing_guards() -> list[str]:
    """Name the append-only tables whose triggers are not there."""
    if connection.vendor == "postgresql":
        sql = (
            "SELECT c.relname || ':' || t.tgname"
            " FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE t.tgenabled <> 'D'"
        )
    else:
        sql = "SELECT tbl_name || ':' || name FROM sqlite_master WHERE type = 'trigger'"
    with connection.cursor() as cursor:
        cursor.execute(sql)
        present = {row[0] for row in cursor.fetchall()}
    verbs = ("update", "delete", "truncate" if connection.vendor == "postgresql" else "insert")
    return [
        table
        for table in guarded_tables()
        if not {f"{table}:{table}_keep_{verb}" for verb in verbs} <= present
    ]


@contextmanager
def erasing() -> Iterator[None]:
    """Open the one door through which append-only rows may be deleted."""
    _open_door(connection, is_open=True)
    try:
        yield
    finally:
        _open_door(connection, is_open=False)


def _open_door(database: BaseDatabaseWrapper, *, is_open: bool) -> None:
    database.ensure_connection()
    if database.vendor == "postgresql":
        with database.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('agentweb.erasing', %s, false)", ["on" if is_open else "off"]
            )
    else:
        database.connection.create_function(_DOOR, 0, lambda: int(is_open))


def _postgresql(tables: list[str]) -> list[str]:
    rows = [_PG_FUNCTION]
    for table in tables:
        for verb in ("UPDATE", "DELETE", "TRUNCATE"):
            name, each = (
                f"{table}_keep_{verb.lower()}",
                "STATEMENT" if verb == "TRUNCATE" else "ROW",
            )
            rows.append(f'DROP TRIGGER IF EXISTS "{name}" ON "{table}"')
            rows.append(
                f'CREATE TRIGGER "{name}" BEFORE {verb} ON "{table}" FOR EACH {each}'
                f" EXECUTE FUNCTION {_DOOR}_refuse()"
            )
    return rows


def _sqlite(tables: list[str]) -> list[str]:
    rows = []
    for table in tables:
        # INSERT OR REPLACE deletes: ours fire the trigger by a pragma, a foreign program, which
        # has no such function, may not insert at all.
        doors = {
            "UPDATE": "",
            "DELETE": f"WHEN {_DOOR}() = 0 ",
            "INSERT": f"WHEN {_DOOR}() IS NULL ",
        }
        for verb, door in doors.items():
            name = f"{table}_keep_{verb.lower()}"
            rows.append(f'DROP TRIGGER IF EXISTS "{name}"')
            rows.append(
                f'CREATE TRIGGER "{name}" BEFORE {verb} ON "{table}" {door}'
                f"BEGIN SELECT RAISE(ABORT, 'table {table} is append-only'); END"
            )
    return rows


def provide_door(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Give a new SQLite connection the function its triggers ask, closed."""
    if connection.vendor == "sqlite":
        connection.connection.create_function(_DOOR, 0, lambda: 0)
        connection.connection.execute("PRAGMA recursive_triggers = ON")
