"""Reads the columns that the tables really have; during a migration the models' may differ.

One query: Django's introspection runs one for each table, and on SQLite parses the statement that
created it, which took most of the time of a `migrate` with nothing to do.
"""

from __future__ import annotations

from collections import defaultdict

from django.db import connection

_SQL = {
    "sqlite": "SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c"
    " WHERE t.type = 'table'",
    "postgresql": "SELECT c.relname, a.attname FROM pg_attribute a"
    " JOIN pg_class c ON c.oid = a.attrelid"
    " WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')"
    " AND a.attnum > 0 AND NOT a.attisdropped",
}


def read_columns() -> dict[str, set[str]]:
    """Return the names of the columns by table."""
    found: dict[str, set[str]] = defaultdict(set)
    with connection.cursor() as cursor:
        cursor.execute(_SQL[connection.vendor])
        for table, column in cursor.fetchall():
            found[table].add(column)
    return dict(found)
