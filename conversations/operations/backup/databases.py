"""Copies of the database at one moment: by SQLite's backup, or by pg_dump in a snapshot."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.db import connection, transaction

from conversations.operations.backup.archive import BackupError

logger = logging.getLogger("agentweb.audit")

#: Number of polls for other sessions; seconds between two polls.
_POLLS, _PAUSE = 20, 0.1
_CONNECTION_OPTIONS = ("host", "hostaddr", "port", "user", "dbname", "service", "passfile")
#: The environment variables that PostgreSQL's programs get; keys are not among them.
_ENVIRONMENT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR")
_ENVIRONMENT_PREFIXES = ("PG", "LC_", "LD_", "KRB5", "SSL_")
#: The workspaces' objects and the last anchor, as the snapshot has them.
_OBJECTS = "SELECT object FROM conversations_workspacefile WHERE state IN ('live', 'trash')"
_MARK = "SELECT number FROM conversations_anchormark"
#: Excluded: a session key alone opens its owner's account, and an ended session must not return.
_SESSIONS = ("conversations_session", "django_session")
#: By their names, which are numbered: a squashed migration is recorded after those it replaces.
_APPLIED = "SELECT app, name FROM django_migrations ORDER BY name"
#: All our tables are dropped first: those of a newer version, which the copy does not have, may
#: reference the others and would be in the way of later migrations.
_DROP_TABLES = """
DO $$ DECLARE one text; BEGIN
  FOR one IN SELECT quote_ident(tablename) FROM pg_tables
    WHERE schemaname = current_schema() AND tablename LIKE 'conversations\\_%'
  LOOP EXECUTE 'DROP TABLE ' || one || ' CASCADE'; END LOOP;
END $$;
"""


@contextmanager
def copy_database(folder: Path) -> Iterator[tuple[Path, list[str], int, dict[str, str]]]:
    """Copy the database and yield the copy, its object names, last anchor and migrations."""
    if connection.vendor == "sqlite":
        copy = folder / "database.sqlite3"
        try:
            facts = _copy_sqlite(copy)
        except sqlite3.Error as error:
            raise BackupError(
                f"the database cannot be copied into {folder.parent}: {error}"
            ) from error
        yield copy, *facts
        return
    copy = folder / "database.pgdump"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        cursor.execute("SELECT pg_export_snapshot()")
        name = str(cursor.fetchone()[0])
        found = []
        for sql in (_OBJECTS, _MARK, _APPLIED):
            cursor.execute(sql)
            found.append(cursor.fetchall())
        run_postgres(
            "pg_dump", "--format=custom", "--no-owner", "--no-privileges", f"--snapshot={name}",
            *(f"--exclude-table-data=*.{table}" for table in _SESSIONS), f"--file={copy}",
        )  # fmt: skip
    yield copy, *_read_facts(found)


def _copy_sqlite(copy: Path) -> tuple[list[str], int, dict[str, str]]:
    connection.ensure_connection()
    with closing(sqlite3.connect(copy)) as target:
        connection.connection.backup(target)
    with closing(sqlite3.connect(copy)) as source:
        source.execute("PRAGMA journal_mode = DELETE")
        source.execute("PRAGMA secure_delete = ON")
        tables = {name for (name,) in source.execute("SELECT name FROM sqlite_master")}
        for table in tables.intersection(_SESSIONS):
            source.execute(f"DELETE FROM {table}")  # noqa: S608 - our own tables
        source.commit()
        rows = [source.execute(sql).fetchall() for sql in (_OBJECTS, _MARK, _APPLIED)]
    return _read_facts(rows)


def _read_facts(rows: list[list[tuple[object, ...]]]) -> tuple[list[str], int, dict[str, str]]:
    objects, marks, applied = rows
    number = int(str(marks[0][0])) if marks else 0
    return [str(row[0]) for row in objects], number, {str(app): str(name) for app, name in applied}


def restore_sqlite(copy: Path) -> Path | None:
    """Replace the database by the copy; return where the previous one was moved."""
    target = Path(connection.settings_dict["NAME"])
    _demand_intact(copy)
    connection.close()
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    copy = _bring_beside(copy, target)
    try:
        before = _move_aside(target)
    except BaseException:
        copy.unlink(missing_ok=True)
        raise
    for rest in ("-wal", "-shm"):
        if before is not None and target.with_name(target.name + rest).exists():
            # The write-ahead log of a damaged database may have recoverable data.
            target.with_name(target.name + rest).replace(before.with_name(before.name + rest))
        target.with_name(target.name + rest).unlink(missing_ok=True)
    copy.replace(target)
    return before


def _bring_beside(copy: Path, target: Path) -> Path:
    """Move the copy into the database's folder, which may be on another disk, before it is used."""
    beside = target.with_name(f".{target.name}.restored")
    try:
        shutil.move(copy, beside)
        beside.chmod(0o600)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise BackupError(f"the database cannot be put into {target.parent}: {error}") from error
    return beside


def _move_aside(target: Path) -> Path | None:
    """Move the present database away, unless it is empty; return its new path."""
    if not target.exists():
        return None
    try:
        # Write the log into the database first, so that there is only one file to move.
        with closing(sqlite3.connect(target)) as old:
            old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            if not old.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                return None
    except sqlite3.OperationalError as error:
        raise BackupError(f"the database {target} cannot be moved away: {error}") from error
    except sqlite3.DatabaseError as error:
        logger.warning("the database that was there is damaged: %s", error)
    return target.replace(name_previous(target))


def name_previous(target: Path) -> Path:
    """Return the path beside `target` at which a restore keeps what was there."""
    return target.with_name(f"{target.name}.before-{datetime.now(UTC):%Y%m%d-%H%M%S}")


def _demand_intact(copy: Path) -> None:
    try:
        with closing(sqlite3.connect(copy)) as database:
            report = database.execute("PRAGMA integrity_check").fetchone()[0]
    except sqlite3.DatabaseError as error:
        report = str(error)
    if report != "ok":
        raise BackupError(f"the database in the backup is damaged: {report}")


def restore_postgres(copy: Path) -> None:
    """Replace our tables by those of the copy, in one transaction."""
    connection.close()
    away, script = copy.with_name("away.sql"), copy.with_name("database.sql")
    away.write_text(_DROP_TABLES, encoding="utf-8")
    # To a file first: an interrupted pipe into psql would restore a part of the database.
    _run_postgres(
        "pg_restore", "--clean", "--if-exists", "--no-owner", "--no-privileges",
        f"--file={script}", str(copy),
    )  # fmt: skip
    run_postgres(
        "psql", "--no-psqlrc", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1",
        f"--file={away}", f"--file={script}",
    )  # fmt: skip


def demand_alone() -> None:
    """Raise BackupError while others use the PostgreSQL database; on SQLite do nothing."""
    if connection.vendor == "postgresql" and (count := _count_sessions()):
        raise BackupError(f"{count} others use the database: stop the servers and workers")


def _count_sessions() -> int:
    """Count the sessions of others in the PostgreSQL database."""
    from psycopg import connect

    given = connection.get_connection_params()
    connection.close()
    if "pool" in connection.settings_dict["OPTIONS"]:
        # The pool's connections are sessions too.
        pooled: Any = connection
        pooled.close_pool()
    options = {
        name: value
        for name, value in given.items()
        if name in (*_CONNECTION_OPTIONS, "password") or name.startswith("ssl")
    }
    sql = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid() AND usesysid IS NOT NULL"
        # The type of another role's session is hidden.
        " AND coalesce(backend_type, 'client backend') = 'client backend'"
    )
    with connect(**options, autocommit=True) as link:
        for _ in range(_POLLS):
            if not (count := int(link.execute(sql).fetchall()[0][0])):
                break
            # The server may still be closing sessions.
            time.sleep(_PAUSE)
    return count


def run_postgres(program: str, *options: str) -> None:
    """Run a program of PostgreSQL on Django's database; raises BackupError."""
    from psycopg.conninfo import make_conninfo

    given = connection.get_connection_params()
    known = {
        name: str(value)
        for name, value in given.items()
        if name in _CONNECTION_OPTIONS or name.startswith("ssl")
    }
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="agentweb-") as file:
        if password := str(given.get("password") or ""):
            # The password goes into a file: others may read arguments, and children inherit
            # variables.
            escaped = password.replace("\\", "\\\\").replace(":", "\\:")
            file.write(f"*:*:*:*:{escaped}\n")
            file.flush()
            known["passfile"] = file.name
        _run_postgres(program, f"--dbname={make_conninfo('', **known)}", *options)


def _run_postgres(program: str, *options: str) -> None:
    path = shutil.which(program)
    if path is None:
        raise BackupError(
            f"{program} is not there: install the PostgreSQL client of the server's version, or"
            " back the database up with the tools of whoever runs it"
        )
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in _ENVIRONMENT or name.startswith(_ENVIRONMENT_PREFIXES)
    }
    done = subprocess.run(
        [path, *options], check=False, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        said = done.stderr.strip()[-2_000:] or f"it ended with code {done.returncode}"
        raise BackupError(f"{program} failed: {said}")
