"""Triggers that enforce append-only tables, on PostgreSQL and SQLite alike.

They are installed after every migration, because SQLite drops a table's triggers when a migration
rebuilds it; a trigger that is up to date stays, so that a start without migrations locks no table
in use. They refuse to change, delete or truncate rows, and to insert at a link that the chain has
passed. The one exception is `allow_erasing()`: a session setting on PostgreSQL; on SQLite an SQL
function that only our connections define, so a plain `sqlite3` shell is refused too. The
application's own role on PostgreSQL has no right to delete either (operations/db_role.py): it calls
the functions of log/erase_functions.py, which run with the owner's rights.
"""

# ruff: noqa: S608 - the names are those of our own tables
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import UniqueConstraint

from conversations import models
from conversations.log.chain import OWNED, SITE
from conversations.log.columns import read_columns
from conversations.models import ApiCall, AppendOnly, Chained, Conversation, SiteChain

_ERASING = "agentweb_erasing"
_PG_BODY = """
BEGIN
  IF current_setting('agentweb.erasing', true) = 'on' THEN
    IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
    IF TG_OP = 'TRUNCATE' THEN RETURN NULL; END IF;
  END IF;
  RAISE EXCEPTION 'table % is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END """
#: pg_trigger.tgtype of a BEFORE trigger, by what it guards against.
_PG_TYPES = {"update": 1 | 2 | 16, "delete": 1 | 2 | 8, "truncate": 2 | 32, "place": 1 | 2 | 4}
_CONVERSATIONS, _CALLS = Conversation._meta.db_table, ApiCall._meta.db_table
#: The query for the end of a row's chain, by the lookup to the row's conversation.
_ENDS = {
    "conversation": f'SELECT links FROM "{_CONVERSATIONS}" WHERE id = NEW.conversation_id',
    "call__conversation": f'SELECT c.links FROM "{_CONVERSATIONS}" c JOIN "{_CALLS}" a'
    " ON a.conversation_id = c.id WHERE a.id = NEW.call_id",
}
_SITE_END = f'SELECT links FROM "{SiteChain._meta.db_table}" WHERE id = 1'


@dataclass(frozen=True, slots=True)
class Guard:
    """A trigger or function: its definition in the database, and the statements that create it."""

    name: str
    definition: object
    statements: tuple[str, ...]


def list_guarded_models() -> list[type[AppendOnly]]:
    """Return every append-only model, ordered by the name of its table."""
    classes = (getattr(models, name) for name in models.__all__)
    kinds = [
        kind
        for kind in classes
        if isinstance(kind, type) and issubclass(kind, AppendOnly) and not kind._meta.abstract
    ]
    return sorted(kinds, key=lambda kind: kind._meta.db_table)


def list_guarded_tables() -> list[str]:
    return [kind._meta.db_table for kind in list_guarded_models()]


def install_guards(using: str = "default", **_: Any) -> None:
    """Install the triggers that an existing append-only table lacks or has in another form."""
    if connection.alias != using:
        return
    # Between two migrations, forward or back, a table or a column may be missing.
    columns = read_columns()
    kinds = [kind for kind in list_guarded_models() if _has_all_columns(kind, columns)]
    make = _write_postgresql_guards if connection.vendor == "postgresql" else _write_sqlite_guards
    with transaction.atomic(), connection.cursor() as cursor:
        present = _read_present_guards(cursor)
        for guard in (guard for kind in kinds for guard in make(kind)):
            if present.get(guard.name) != guard.definition:
                for statement in guard.statements:
                    cursor.execute(statement)
                present[guard.name] = guard.definition


def _read_present_guards(cursor: Any) -> dict[str, object]:
    """Return the definitions in the database like `Guard.definition`, of enabled triggers only."""
    if connection.vendor != "postgresql":
        cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        return dict(cursor.fetchall())
    cursor.execute(
        "SELECT t.tgname, c.relname, t.tgtype, p.proname"
        " FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid"
        " WHERE t.tgenabled IN ('O', 'A') AND t.tgqual IS NULL AND c.relnamespace ="
        " current_schema()::regnamespace"
    )
    triggers: dict[str, object] = {name: tuple(rest) for name, *rest in cursor.fetchall()}
    cursor.execute(
        "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = current_schema()::regnamespace"
    )
    return triggers | dict(cursor.fetchall())


def drop_insert_guards(using: str = "default", plan: Sequence[object] = (), **_: Any) -> None:
    """Drop the triggers that name columns, because migrations may drop these columns.

    `install_guards` creates them again after the migrations.
    """
    if connection.alias != using or not plan:
        return
    with transaction.atomic(), connection.cursor() as cursor:
        present = set(connection.introspection.table_names(cursor))
        for table in sorted(present.intersection(list_guarded_tables())):
            where = f' ON "{table}"' if connection.vendor == "postgresql" else ""
            cursor.execute(f'DROP TRIGGER IF EXISTS "{table}_keep_place"{where}')


def _has_all_columns(kind: type[AppendOnly], columns: Mapping[str, set[str]]) -> bool:
    found = columns.get(kind._meta.db_table, set())
    return {field.column for field in kind._meta.concrete_fields} <= found


def find_missing_guards() -> list[str]:
    """Return the append-only tables that lack a trigger."""
    if connection.vendor == "postgresql":
        sql = (
            "SELECT c.relname || ':' || t.tgname"
            " FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
            # Only enabled triggers: neither disabled nor for replicas alone.
            " WHERE t.tgenabled IN ('O', 'A')"
        )
    else:
        sql = "SELECT tbl_name || ':' || name FROM sqlite_master WHERE type = 'trigger'"
    with connection.cursor() as cursor:
        cursor.execute(sql)
        present = {row[0] for row in cursor.fetchall()}
    return [
        table
        for kind in list_guarded_models()
        if not {
            f"{(table := kind._meta.db_table)}:{table}_keep_{verb}"
            for verb in list_guard_verbs(kind)
        }
        <= present
    ]


def list_guard_verbs(kind: type[AppendOnly]) -> tuple[str, ...]:
    """Return the operations against which a table needs guards."""
    if connection.vendor == "sqlite":
        return ("update", "delete", "insert", "place")
    return ("update", "delete", "truncate", *(["place"] if issubclass(kind, Chained) else ()))


@contextmanager
def allow_erasing() -> Iterator[None]:
    """Let append-only rows be deleted within the block."""
    _set_erasing(connection, is_open=True)
    try:
        yield
    finally:
        _set_erasing(connection, is_open=False)


def define_erasing_function(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Define on a new SQLite connection the function that triggers call; it returns 0."""
    if connection.vendor == "sqlite":
        connection.connection.create_function(_ERASING, 0, lambda: 0)
        connection.connection.execute("PRAGMA recursive_triggers = ON")


def _set_erasing(database: BaseDatabaseWrapper, *, is_open: bool) -> None:
    database.ensure_connection()
    if database.vendor == "postgresql":
        with database.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('agentweb.erasing', %s, false)", ["on" if is_open else "off"]
            )
    else:
        database.connection.create_function(_ERASING, 0, lambda: int(is_open))


def write_postgresql_function(kind: type[Chained]) -> Guard:
    """Return the function that refuses a row at a link that its chain has passed."""
    body = (
        f" BEGIN IF {_write_passed_condition(kind)} THEN RAISE EXCEPTION"
        " 'table % is append-only: its chain has passed link %', TG_TABLE_NAME, NEW.link"
        " USING ERRCODE = 'restrict_violation'; END IF;"
        " RETURN NEW; END "
    )
    return _make_function(f"{kind._meta.db_table}_place", body)


def _make_function(name: str, body: str) -> Guard:
    head = f'CREATE OR REPLACE FUNCTION "{name}"() RETURNS trigger LANGUAGE plpgsql AS'
    return Guard(name, body, (f"{head} $${body}$$",))


def write_sqlite_condition(kind: type[AppendOnly]) -> str:
    """Return the condition on which a row cannot be inserted.

    It holds when a row with the same unique columns exists, or the chain has passed the link.
    """
    table = kind._meta.db_table
    taken = [
        f'EXISTS (SELECT 1 FROM "{table}" WHERE '
        + " AND ".join(f'"{column}" = NEW."{column}"' for column in columns)
        + ")"
        for columns in _list_unique_columns(kind)
    ]
    if issubclass(kind, Chained):
        taken.append(_write_passed_condition(kind))
    return " OR ".join(taken)


def _write_postgresql_guards(kind: type[AppendOnly]) -> list[Guard]:
    table, found = kind._meta.db_table, [_make_function(f"{_ERASING}_refuse", _PG_BODY)]
    if issubclass(kind, Chained):
        found.append(write_postgresql_function(kind))
    for verb in list_guard_verbs(kind):
        name, each = f"{table}_keep_{verb}", "STATEMENT" if verb == "truncate" else "ROW"
        when = "INSERT" if verb == "place" else verb.upper()
        function = f"{table}_place" if verb == "place" else f"{_ERASING}_refuse"
        made = (
            f'CREATE TRIGGER "{name}" BEFORE {when} ON "{table}" FOR EACH {each}'
            f' EXECUTE FUNCTION "{function}"()'
        )
        statements = (f'DROP TRIGGER IF EXISTS "{name}" ON "{table}"', made)
        found.append(Guard(name, (table, _PG_TYPES[verb], function), statements))
    return found


def _write_sqlite_guards(kind: type[AppendOnly]) -> list[Guard]:
    table, found = kind._meta.db_table, []
    refuse = f"RAISE(ABORT, 'table {table} is append-only')"
    # INSERT OR REPLACE deletes. On our connections a pragma makes that fire the trigger; another
    # program lacks the function and cannot insert at all. The condition on the unique columns
    # covers connections without the pragma. Inserting an existing text is ignored, because texts
    # are shared.
    refusals = {
        "update": ("UPDATE", "", refuse),
        "delete": ("DELETE", f"WHEN {_ERASING}() = 0 ", refuse),
        "insert": ("INSERT", f"WHEN {_ERASING}() IS NULL ", refuse),
        "place": (
            "INSERT",
            f"WHEN {write_sqlite_condition(kind)} ",
            refuse if issubclass(kind, Chained) else "RAISE(IGNORE)",
        ),
    }
    for verb, (event, when, then) in refusals.items():
        name = f"{table}_keep_{verb}"
        made = f'CREATE TRIGGER "{name}" BEFORE {event} ON "{table}" {when}BEGIN SELECT {then}; END'
        found.append(Guard(name, made, (f'DROP TRIGGER IF EXISTS "{name}"', made)))
    return found


def _write_passed_condition(kind: type[Chained]) -> str:
    if kind not in OWNED:
        end = _SITE_END
    elif kind in SITE:
        end = f"CASE WHEN NEW.call_id IS NULL THEN ({_SITE_END}) ELSE ({_ENDS[OWNED[kind]]}) END"
    else:
        end = _ENDS[OWNED[kind]]
    return f"NEW.link <= COALESCE(({end}), 0)"


def _list_unique_columns(kind: type[AppendOnly]) -> Iterator[list[str]]:
    columns = {field.name: str(field.column) for field in kind._meta.concrete_fields}
    for field in kind._meta.concrete_fields:
        if field.unique:
            yield [columns[field.name]]
    for one in kind._meta.constraints:
        if isinstance(one, UniqueConstraint) and one.condition is None:
            yield [columns[name] for name in one.fields]
