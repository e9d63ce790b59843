"""What the tables of a site hold, by sqlite3 and by PostgreSQL's own functions: nothing of ours.

The sum of the MD5 of all rows does not depend on their order. A row is its values as text, each in
one writing: moments in UTC with microseconds, flags as 0 and 1, identifiers as their digits. Search
terms are left out, and so is JSON where PostgreSQL is read, which writes it in its own way.
"""

# ruff: noqa: S608 - the names are those of our own tables
from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import md5
from pathlib import Path
from typing import Any

import psycopg

#: Tables that a database has for itself, what a move adds, and the ends that grow with it.
_OWN = (
    "django_migrations", "django_session", "conversations_session", "conversations_databasemove",
    "conversations_sitechain", "conversations_settingsversion", "sqlite_",
)  # fmt: skip
#: Between two values, and for none.
_BETWEEN, _NONE = "\x1f", "\x1e"
_HEX = 15
_COLUMNS = (
    "SELECT table_name, column_name, data_type FROM information_schema.columns"
    " WHERE table_schema = 'public' ORDER BY table_name, column_name"
)
#: The text of a column, by its type on PostgreSQL; those that are not here are not compared.
_POSTGRESQL = {
    "boolean": '"{0}"::int::text',
    "uuid": "replace(\"{0}\"::text, '-', '')",
    "timestamp with time zone": ("to_char(\"{0}\" AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')"),
    "bytea": "encode(\"{0}\", 'hex')",
    **dict.fromkeys(
        ("text", "character varying", "bigint", "integer", "smallint", "date"), '"{0}"::text'
    ),
}

#: The number of rows and the sum of their digests, by table.
Sums = dict[str, tuple[int, int]]
#: The type of each column on PostgreSQL, by table.
Types = dict[str, dict[str, str]]


def read_types(url: str) -> Types:
    """Return the columns of a site's tables with their types on PostgreSQL."""
    found: Types = {}
    with psycopg.connect(url) as database:
        for table, column, kind in database.execute(_COLUMNS).fetchall():
            if not table.startswith(_OWN):
                found.setdefault(table, {})[column] = kind
    return found


def sum_postgresql(url: str, types: Types) -> Sums:
    found: Sums = {}
    with psycopg.connect(url) as database:
        for table, columns in types.items():
            texts = [
                f"coalesce({_POSTGRESQL[kind].format(name)}, chr(30))"
                for name, kind in columns.items()
                if kind in _POSTGRESQL
            ]
            row = f"md5(concat_ws(chr(31), {', '.join(texts)}))"
            sql = (
                f"SELECT count(*), coalesce(sum(('x' || left({row}, {_HEX}))::bit({_HEX * 4})"
                f'::bigint), 0) FROM "{table}"'
            )
            count, total = database.execute(sql.encode()).fetchall()[0]
            found[table] = int(count), int(total)
    return found


def sum_sqlite(path: Path, types: Types, *, has_json: bool = False) -> Sums:
    """Add up the rows of a file; the columns and their types are those of PostgreSQL."""
    found: Sums = {}
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        for table, columns in types.items():
            writers = [
                (name, write)
                for name, kind in columns.items()
                if (write := _WRITERS.get(kind)) and (has_json or kind in _POSTGRESQL)
            ]
            count = total = 0
            for text in _read_texts(database, table, writers):
                digest = md5(text.encode(), usedforsecurity=False).hexdigest()
                count, total = count + 1, total + int(digest[:_HEX], 16)
            found[table] = count, total
    return found


def list_differences(one: Sums, other: Sums) -> list[str]:
    """Return the tables that differ."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def _read_texts(
    database: sqlite3.Connection, table: str, writers: list[tuple[str, Callable[[Any], str]]]
) -> Iterator[str]:
    names = ", ".join(f'"{name}"' for name, _ in writers)
    for row in database.execute(f'SELECT {names} FROM "{table}"'):
        yield _BETWEEN.join(
            _NONE if value is None else write(value)
            for (_, write), value in zip(writers, row, strict=True)
        )


def _write_moment(value: str) -> str:
    # SQLite's own clock writes milliseconds; Django leaves out a fraction of nothing.
    return value + "." + "0" * 6 if "." not in value else value.ljust(26, "0")


def _write_json(value: str) -> str:
    return json.dumps(json.loads(value), sort_keys=True)


_WRITERS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(_POSTGRESQL, str),
    "timestamp with time zone": _write_moment,
    "bytea": bytes.hex,
    "jsonb": _write_json,
}
