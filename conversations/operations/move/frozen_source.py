"""The database that is moved, in one state: nobody can write to it while it is read.

On SQLite a write transaction is open for as long; on PostgreSQL all tables are locked against
writers, before the snapshot of a repeatable read is taken.
"""

# ruff: noqa: S608 - the names are those of our own tables
from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from django.db import DatabaseError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from conversations.log.findings import Problem, describe_error
from conversations.models import IS_LIVE, Turn
from conversations.operations.move import canonical_rows
from conversations.operations.move.canonical_rows import Table, Values

SOURCE = "source"
#: Bytes that are read at once, if rows are not larger, and rows.
BYTES_AT_ONCE, ROWS_AT_ONCE = 2_000_000, 500
#: Problems that are listed before the reading ends.
MOST_PROBLEMS = 50
Tell = Callable[[str], None]


class MoveError(Exception):
    """The site cannot be moved; the message says why."""

    code = "move"


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What a table holds: its rows, the bytes of their lines, and the digest of all lines."""

    name: str
    rows: int
    bytes: int
    digest: str
    #: The last number the database gave to a row.
    number: int = 0


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a database holds, and what of it PostgreSQL would refuse."""

    tables: tuple[TableFacts, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def rows(self) -> int:
        return sum(facts.rows for facts in self.tables)

    @property
    def bytes(self) -> int:
        return sum(facts.bytes for facts in self.tables)

    @property
    def digest(self) -> str:
        lines = "".join(f"{one.name} {one.rows} {one.digest}\n" for one in self.tables)
        return "sha256:" + hashlib.sha256(lines.encode()).hexdigest()

    def data(self) -> list[dict[str, Any]]:
        return [asdict(one) for one in self.tables]


@contextmanager
def freeze_source() -> Iterator[BaseDatabaseWrapper]:
    """Lock the source against writers within the block; raises MoveError if it is in use."""
    database = connections[SOURCE]
    executor = MigrationExecutor(database)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise MoveError("the database is not of this version: run manage.py migrate first")
    with transaction.atomic(using=SOURCE):
        try:
            _lock_tables(database)
        except DatabaseError as error:
            raise MoveError(f"others write to the database: {error}") from error
        _demand_no_turns()
        yield database


def _lock_tables(database: BaseDatabaseWrapper) -> None:
    """Lock all tables; SQLite has begun a write transaction already."""
    if database.vendor == "sqlite":
        return
    names = ", ".join(f'"{table.name}"' for table in canonical_rows.list_tables())
    with database.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SET LOCAL lock_timeout = '5s'")
        # Not SHARE, which would allow two moves at a time.
        cursor.execute(f"LOCK TABLE {names} IN SHARE ROW EXCLUSIVE MODE")


def _demand_no_turns() -> None:
    live = Turn.objects.using(SOURCE).filter(IS_LIVE, lease_until__gt=timezone.now())
    if count := live.count():
        raise MoveError(
            f"turns are running ({count}): stop the servers and workers; if they were killed, wait"
            " for half a minute"
        )


def read_rows(database: BaseDatabaseWrapper, table: Table, after: Any = None) -> Iterator[Any]:
    """Yield the rows of a table as the database has them, by their keys, after a key."""
    key = f'"{table.key.name}"'
    if table.key.kind == "text" and database.vendor == "postgresql":
        key += ' COLLATE "C"'
    where = "" if after is None else f" WHERE {key} > %s"
    sql = f"{canonical_rows.write_select(table, database.vendor)}{where} ORDER BY {key}"
    with database.chunked_cursor() as cursor:
        cursor.execute(sql, () if after is None else [after])
        count = 1
        while rows := cursor.fetchmany(count):
            yield from rows
            largest = max(sum(len(v) for v in row if isinstance(v, str)) for row in rows) or 1
            count = max(1, min(count * 2, ROWS_AT_ONCE, BYTES_AT_ONCE // largest))


def read_inventory(
    database: BaseDatabaseWrapper, tell: Tell, *, is_checked: bool = False
) -> Inventory:
    """Read everything once; `is_checked`: and look for what PostgreSQL would refuse."""
    problems: list[Problem] = []
    numbers = _read_numbers(database)
    found = []
    for table in canonical_rows.list_tables():
        facts = _read_facts(database, table, problems if is_checked else None)
        found.append(
            TableFacts(table.name, *facts, numbers.get(table.name, 0) if table.is_numbered else 0)
        )
        if found[-1].rows:
            tell(f"{table.name}: {found[-1].rows:,} rows read")
    if database.vendor == "sqlite":
        problems += _find_lost_references(database)
    return Inventory(tuple(found), tuple(problems))


def _read_facts(
    database: BaseDatabaseWrapper, table: Table, problems: list[Problem] | None
) -> tuple[int, int, str]:
    whole, count, size, last = hashlib.sha256(), 0, 0, None
    try:
        for row in read_rows(database, table):
            last = row[0]
            if problems is not None and len(problems) < MOST_PROBLEMS:
                before = len(problems)
                problems += canonical_rows.find_problems(table, database.vendor, row)
                if len(problems) > before:
                    continue
            line = write_row_line(table, database, row)
            whole.update(line)
            count, size = count + 1, size + len(line)
    except (DatabaseError, ValueError) as error:
        text = f"the row after {last} cannot be read: {describe_error(error)}"
        raise MoveError(f"{table.name}: {text}") from error
    return count, size, "sha256:" + whole.hexdigest()


def write_row_line(table: Table, database: BaseDatabaseWrapper, row: Any) -> bytes:
    values: Values = canonical_rows.read_row(table, database.vendor, row)
    return canonical_rows.write_line(values)


def _read_numbers(database: BaseDatabaseWrapper) -> dict[str, int]:
    """Return the last number of each table whose rows the database numbers."""
    with database.cursor() as cursor:
        if database.vendor == "sqlite":
            cursor.execute("SELECT name, seq FROM sqlite_sequence")
            return dict(cursor.fetchall())
        found = {}
        for table in canonical_rows.list_tables():
            if table.is_numbered:
                name = f'"{table.name}"'
                cursor.execute("SELECT pg_get_serial_sequence(%s, %s)", [name, table.key.name])
                cursor.execute(
                    f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM"
                    f" {cursor.fetchone()[0]}"
                )
                found[table.name] = int(cursor.fetchone()[0])
        return found


def _find_lost_references(database: BaseDatabaseWrapper) -> Iterator[Problem]:
    """Yield rows that name a row which is not there; a PostgreSQL has none."""
    with database.cursor() as cursor:
        cursor.execute("PRAGMA foreign_key_check")
        for table, key, parent, _ in cursor.fetchmany(MOST_PROBLEMS):
            yield Problem(str(table), str(key), f"names a row of {parent} that is not there")
