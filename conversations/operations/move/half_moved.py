"""The database that the site is moved to, and how far it is: kept in a table of its own.

Foreign keys and triggers are taken away first and put back at the end, so that rows can come in any
order, and each batch is one transaction with the note of its last key. A move that was killed goes
on from there; the table is dropped when the move is complete.
"""

# ruff: noqa: S608 - the names are those of our own tables
from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from django.core.management import call_command
from django.db import DatabaseError, connection, transaction

from conversations.log.erase_functions import install_erase_functions
from conversations.log.search_index import INDEX_TABLE, install_index
from conversations.log.settings_version import install_settings_version
from conversations.log.triggers import install_guards
from conversations.models import Conversation, MoneyRecord, SiteChain, User
from conversations.operations.db_role import grant_rights
from conversations.operations.move import canonical_rows
from conversations.operations.move.canonical_rows import Table, Values
from conversations.operations.move.frozen_source import Inventory, MoveError

#: What is known of the move, by names.
NOTES = "agentweb_move"
_TRIGGERS = {
    "sqlite": "SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT t.tgname, c.relname FROM pg_trigger t JOIN pg_class c"
    " ON c.oid = t.tgrelid WHERE NOT t.tgisinternal"
    " AND c.relnamespace = current_schema()::regnamespace",
}
_FOREIGN_KEYS = (
    "SELECT c.relname, k.conname, pg_get_constraintdef(k.oid) FROM pg_constraint k JOIN pg_class c"
    " ON c.oid = k.conrelid WHERE k.contype = 'f'"
    " AND k.connamespace = current_schema()::regnamespace"
)


def is_half_moved() -> bool:
    return NOTES in connection.introspection.table_names()


def holds_site() -> bool:
    """Return whether there is a site in the database."""
    tables = connection.introspection.table_names()
    if User._meta.db_table not in tables:
        return False
    # The prices that every site begins with are recorded by the migrations.
    begun = MoneyRecord.objects.count() if MoneyRecord._meta.db_table in tables else 0
    return (
        User.objects.exists()
        or Conversation.objects.exists()
        or SiteChain.objects.exclude(links=begun).exists()
    )


def demand_room() -> None:
    """Raise MoveError where neither an empty database nor a half-done move is."""
    if not is_half_moved() and holds_site():
        raise MoveError("there is a site in that database: a move needs an empty one")


def begin_move(inventory: Inventory) -> None:
    """Create the tables, empty and without foreign keys and triggers; or go on with a move.

    Raises MoveError if another state of the source was moved half.
    """
    if is_half_moved():
        if read_note("tables") != inventory.data():
            raise MoveError(
                "half of another site, or of another state of this one, is in that database: begin"
                " with an empty database"
            )
        _strip_tables()
        return
    demand_room()
    call_command("migrate", interactive=False, verbosity=0)
    # The command leaves the timeouts of a request to its connection.
    connection.close()
    _strip_tables(inventory)


def _strip_tables(inventory: Inventory | None = None) -> None:
    """Drop triggers and foreign keys; with an inventory, also all rows, and begin the notes."""
    # Within a transaction SQLite would ignore it.
    connection.disable_constraint_checking()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_TRIGGERS[connection.vendor])
        for name, table in cursor.fetchall():
            where = f' ON "{table}"' if connection.vendor == "postgresql" else ""
            cursor.execute(f'DROP TRIGGER "{name}"{where}')
        if inventory is not None:
            cursor.execute(
                f'CREATE TABLE "{NOTES}" (name varchar(100) PRIMARY KEY, value text NOT NULL)'
            )
            write_note("tables", inventory.data())
            write_note("foreign keys", _drop_foreign_keys(cursor))
            for table in canonical_rows.list_tables():
                cursor.execute(f'DELETE FROM "{table.name}"')


def _drop_foreign_keys(cursor: Any) -> list[list[str]]:
    """Drop the foreign keys of PostgreSQL, return them; SQLite's are not checked meanwhile."""
    if connection.vendor == "sqlite":
        return []
    cursor.execute(_FOREIGN_KEYS)
    found = [list(row) for row in cursor.fetchall()]
    for table, name, _ in found:
        cursor.execute(f'ALTER TABLE "{table}" DROP CONSTRAINT "{name}"')
    return found


def read_note(name: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT value FROM "{NOTES}" WHERE name = %s', [name])
        row = cursor.fetchone()
    return None if row is None else json.loads(row[0])


def write_note(name: str, value: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f'INSERT INTO "{NOTES}" (name, value) VALUES (%s, %s)'
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            [name, json.dumps(value)],
        )


def add_rows(table: Table, rows: list[Values]) -> None:
    """Add rows of the common form, and note the last key, in one transaction."""
    written = [canonical_rows.write_row(table, connection, row) for row in rows]
    names = [f'"{column.name}"' for column in table.columns]
    names += [f'"{table.terms}"'] if table.terms else []
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f'COPY "{table.name}" ({", ".join(names)}) FROM STDIN') as copy:
                for row in written:
                    copy.write_row(row)
        else:
            marks = ", ".join(["%s"] * len(names))
            cursor.executemany(
                f'INSERT INTO "{table.name}" ({", ".join(names)}) VALUES ({marks})', written
            )
        count, _ = read_note(table.name) or (0, None)
        write_note(table.name, [count + len(rows), rows[-1][0]])


def finish_tables(inventory: Inventory) -> None:
    """Number on where the source does, put foreign keys and triggers back, and build the index."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            for sql in _write_foreign_keys(cursor):
                cursor.execute(sql)
            for table, facts in zip(canonical_rows.list_tables(), inventory.tables, strict=True):
                if table.is_numbered:
                    _set_number(cursor, table, facts.number)
    except DatabaseError as error:
        raise MoveError(f"the rows do not fit together: {error}") from error
    install_guards()
    install_index()
    install_erase_functions()
    install_settings_version()
    grant_rights()
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f'INSERT INTO "{INDEX_TABLE}" ("{INDEX_TABLE}") VALUES (\'rebuild\')')
            cursor.execute("PRAGMA foreign_key_check")
            if lost := cursor.fetchmany(10):
                raise MoveError(f"the rows do not fit together: {lost}")
        cursor.execute("ANALYZE")
    connection.enable_constraint_checking()


def _write_foreign_keys(cursor: Any) -> Iterator[str]:
    if connection.vendor == "sqlite":
        return
    cursor.execute(_FOREIGN_KEYS)
    present = {name for _, name, _ in cursor.fetchall()}
    for table, name, definition in read_note("foreign keys"):
        if name not in present:
            yield f'ALTER TABLE "{table}" ADD CONSTRAINT "{name}" {definition}'


def _set_number(cursor: Any, table: Table, number: int) -> None:
    """Let the database go on after the last number it gave: those of erased rows do not return."""
    if connection.vendor == "postgresql":
        sequence = f"pg_get_serial_sequence('\"{table.name}\"', '{table.key.name}')"
        cursor.execute(f"SELECT setval({sequence}, %s, %s)", [number or 1, bool(number)])
        return
    cursor.execute("DELETE FROM sqlite_sequence WHERE name = %s", [table.name])
    if number:
        row = [table.name, number]
        cursor.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (%s, %s)", row)


def drop_notes() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f'DROP TABLE "{NOTES}"')
