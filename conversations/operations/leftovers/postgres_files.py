"""The files of PostgreSQL, searched where this process may read them: tables, index, log.

Values of more than two kilobytes are compressed there, so of those the files show little; the rows
and the statistics are read by SQL.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from django.db import DatabaseError, connection, transaction

from conversations.log.search_index import WORDS_INDEX
from conversations.operations.leftovers.phrases import RUN
from conversations.operations.leftovers.places import Place, Wanted
from conversations.operations.leftovers.purge import PurgeError, connect_as_operator
from conversations.operations.leftovers.sqlite_pages import read_file

#: Tables, their indexes and the tables of their long values, with the statistics' own.
_RELATIONS = """
SELECT pg_relation_filepath(c.oid) FROM pg_class c
WHERE c.relkind IN ('r', 'i', 't', 'm') AND (c.relnamespace = current_schema()::regnamespace
  OR c.relnamespace = 'pg_toast'::regnamespace OR c.relname LIKE 'pg\\_statistic%')
"""
_STATISTICS = """
SELECT concat_ws(' ', most_common_vals, histogram_bounds, most_common_elems) FROM pg_stats
WHERE schemaname = current_schema()
"""


def search_postgres(wanted: Wanted) -> Iterator[Place]:
    """Search statistics, and the server's files where they are readable from here."""
    with connection.cursor() as cursor:
        cursor.execute(_STATISTICS)
        texts = [str(text).encode() for (text,) in cursor.fetchall()]
    yield Place("database: statistics", *wanted.find_phrases(texts))
    root = _find_folder()
    if root is None:
        note = "the server's files cannot be read from here"
        yield from (Place(f"database: {name}", None, note=note) for name in ("files", "index"))
        return
    # What is only in memory yet is written to the files first.
    with contextlib.suppress(PurgeError), connect_as_operator() as link:
        link.execute("CHECKPOINT")
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_relation_filepath(to_regclass(%s))", [WORDS_INDEX])
        index = root / str(cursor.fetchone()[0])
        cursor.execute(_RELATIONS)
        names = [name for (name,) in cursor.fetchall() if name]
    tables = [path for name in names for path in _list_parts(root / name)]
    yield Place("database: files", *wanted.find_phrases(_read_all(tables)))
    yield Place("database: index", *wanted.find_words(_list_keys(wanted, _list_parts(index))))
    log = sorted(path for path in (root / "pg_wal").iterdir() if path.is_file())
    yield Place("database: write-ahead log", *wanted.find_phrases(_read_all(log)))


def _find_folder() -> Path | None:
    """Return the folder of the server's data, if it is on this machine and readable."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SHOW data_directory")
            root = Path(str(cursor.fetchone()[0]))
            cursor.execute("SELECT pg_relation_filepath('pg_class')")
            is_here = (root / str(cursor.fetchone()[0])).is_file()
            return root if is_here and any((root / "pg_wal").iterdir()) else None
    except (DatabaseError, OSError):
        return None


def _list_parts(path: Path) -> list[Path]:
    """Return a relation's files: one for each gigabyte."""
    return [one for one in (path, *sorted(path.parent.glob(f"{path.name}.*"))) if one.is_file()]


def _read_all(paths: list[Path]) -> Iterator[bytes]:
    for path in paths:
        yield from read_file(path)


def _list_keys(wanted: Wanted, paths: list[Path]) -> Iterator[bytes]:
    """Yield what may be a key of the index; the byte before a long one is its length."""
    for piece in _read_all(paths):
        for match in RUN.finditer(piece.lower()):
            yield match[0]
            yield match[0][1:]
