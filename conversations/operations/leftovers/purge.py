"""Removing what deleted rows left in the database's files.

SQLite overwrites freed bytes (`PRAGMA secure_delete`), but its full-text index only marks terms as
deleted: the segments are merged into one, which leaves them out, in steps of a few milliseconds.
PostgreSQL removes dead rows by VACUUM; its index of words never gives up a word and is therefore
built anew beside the old one; its statistics hold samples of texts and are taken again. VACUUM does
not overwrite the bytes: `rewrite_database` does, while nobody can write.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from conversations.log.search_index import INDEX_TABLE, WORDS_INDEX

logger = logging.getLogger("agentweb.erase")

#: Pages that one step of a merge writes.
_STEP = 200
_PATIENCE_MS = 250


class PurgeError(Exception):
    """The database's files could not be cleaned; the message says why."""

    code = "purge"


def may_purge() -> bool:
    """Return whether this process is, or knows how to be, the owner of PostgreSQL's tables."""
    if connection.vendor == "sqlite" or settings.MIGRATE_DATABASE:
        return True
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass(%s)",
            [WORDS_INDEX],
        )
        row = cursor.fetchone()
    return row is not None and bool(row[0])


def purge_database() -> None:
    """Remove deleted rows from files and index while the site runs; raises PurgeError."""
    if connection.vendor == "sqlite":
        _merge_segments()
        _truncate_log()
        return
    if not may_purge():
        # VACUUM would pass over a table of another role with a warning.
        raise PurgeError(
            "only the owner of the tables can clean them: run it where"
            " AGENTWEB_MIGRATE_DATABASE_URL is set"
        )
    with connect_as_operator() as link:
        for table in list_tables():
            link.execute(f'VACUUM (ANALYZE) "{table}"')
        # What an interrupted run left behind is no index.
        link.execute(f'DROP INDEX CONCURRENTLY IF EXISTS "{WORDS_INDEX}_ccnew"')
        link.execute(f'REINDEX INDEX CONCURRENTLY "{WORDS_INDEX}"')


def rewrite_database() -> None:
    """Write the database's files anew, while writers wait; raises PurgeError."""
    purge_database()
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM")
        _truncate_log()
        return
    with connect_as_operator() as link:
        for table in list_tables():
            link.execute(f'VACUUM (FULL, ANALYZE) "{table}"')
        for statement in ("VACUUM FULL pg_statistic", "SELECT pg_switch_wal()", "CHECKPOINT"):
            # For a role with more rights than the tables' owner; the proof tells what is left.
            with contextlib.suppress(Exception):
                link.execute(statement)


def list_tables() -> list[str]:
    """Return the tables of the site that exist."""
    return sorted(connection.introspection.table_names())


def _merge_segments() -> None:
    """Merge the index into one segment, each step in a transaction of its own."""
    size = -_STEP  # negative: begin a merge of everything
    while True:
        with transaction.atomic(), connection.cursor() as cursor:
            before = connection.connection.total_changes
            cursor.execute(
                f'INSERT INTO "{INDEX_TABLE}"("{INDEX_TABLE}", rank) VALUES (%s, %s)',  # noqa: S608
                ["merge", size],
            )
            # A step that had nothing to do changes fewer than two rows.
            if connection.connection.total_changes - before < 2:
                return
        size = _STEP


def _truncate_log() -> None:
    """Write the write-ahead log into the database and empty it, unless readers are in the way."""
    with connection.cursor() as cursor:
        # Writers wait while it waits for readers.
        cursor.execute("PRAGMA busy_timeout")
        patience = cursor.fetchone()[0]
        cursor.execute(f"PRAGMA busy_timeout = {_PATIENCE_MS}")
        try:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            is_busy = cursor.fetchone()[0]
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {patience}")
    if is_busy:
        raise PurgeError("the database is in use, so its write-ahead log was not emptied")


@contextlib.contextmanager
def connect_as_operator() -> Iterator[Any]:
    """Connect to PostgreSQL as the tables' owner, without the timeouts of pages."""
    import psycopg

    given = dict(connection.get_connection_params())
    if settings.MIGRATE_DATABASE:
        owner = settings.MIGRATE_DATABASE
        names = {"USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
        given |= {name: owner[key] for key, name in names.items() if owner[key]}
    for name in ("context", "cursor_factory", "prepare_threshold", "pool", "options"):
        given.pop(name, None)
    given["options"] = "-c lock_timeout=30s -c statement_timeout=0"
    try:
        with psycopg.connect(**given, autocommit=True) as link:
            yield link
    except psycopg.Error as error:
        raise PurgeError(f"PostgreSQL says: {error}") from error
