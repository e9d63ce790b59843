"""Checks of the database: reachable, migrated to this version, append-only, clock in agreement."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.core.management import CommandError
from django.db import DatabaseError, InterfaceError, connection

from agentweb.doctor.report_lines import Line, failed, ok, warn
from agentweb.serving import startup
from conversations.log.triggers import find_missing_guards
from conversations.turns.worker_queue import read_database_time

#: Seconds by which the clocks may differ: for no remark, and for no failure.
NEAR, FAR = 2.0, 30.0


def check_server() -> Iterator[Line]:
    try:
        connection.ensure_connection()
    except (DatabaseError, InterfaceError):
        yield failed("database", "it does not answer", "Start it, or correct DATABASE_URL.")
        return
    if connection.vendor == "postgresql":
        yield from _postgresql()
    else:
        yield from _sqlite(Path(settings.DATABASES["default"]["NAME"]))


def _postgresql() -> Iterator[Line]:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        yield ok("database", f"PostgreSQL {cursor.fetchone()[0]}")
        cursor.execute(
            "SELECT (SELECT count(*) FROM pg_stat_activity),"
            " (SELECT rolsuper FROM pg_roles WHERE rolname = current_user),"
            " current_setting('fsync'), current_setting('synchronous_commit')"
        )
        used, is_superuser, fsync, commit = cursor.fetchone()
    most = startup.read_max_connections()
    text = f"{used} of {most} connections in use, {settings.DATABASE_POOL} for each process"
    if most < used + startup.SPARE_CONNECTIONS:
        hint = "Raise max_connections, or lower AGENTWEB_DATABASE_POOL."
        yield warn("connections", text, hint)
    else:
        yield ok("connections", text)
    if is_superuser:
        text = "the app is a superuser of PostgreSQL, which may switch the log's guards off"
        hint = "Give it a role of its own (see AGENTWEB_MIGRATE_DATABASE_URL)."
        yield warn("database role", text, hint)
    if "off" in (fsync, commit):
        text = "fsync or synchronous_commit is off: a power cut loses acknowledged messages"
        yield warn("durability", text, "Switch both on in postgresql.conf.")


def _sqlite(path: Path) -> Iterator[Line]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT sqlite_version()")
        yield ok("database", f"SQLite {cursor.fetchone()[0]}: {path}")
        cursor.execute("PRAGMA quick_check(3)")
        found = [row[0] for row in cursor.fetchall()]
    if found == ["ok"]:
        yield ok("database file", "whole")
    else:
        hint = "Stop the server and put a backup back (agentweb/README.md, Operations)."
        yield failed("database file", f"damaged: {found[0][:200]}", hint)
    size = path.stat().st_size if path.is_file() else 0
    if size > shutil.disk_usage(path.parent).free:
        text = "the disk has less room than the database is large: no backup fits beside it"
        yield warn("database file", text, "Make room, or write backups to another disk.")


def check_schema() -> Iterator[Line]:
    hint = "Start `manage.py serve` of this version, or run `manage.py migrate`."
    missing = startup.list_unapplied_migrations()
    if missing:
        yield failed("migrations", f"{len(missing)} are not applied, first {missing[0]}", hint)
        return
    yield ok("migrations", "all applied")
    if tables := find_missing_guards():
        hint = "Run `manage.py migrate`, which puts them back, then `manage.py verify`."
        text = f"append-only triggers are missing on {', '.join(tables)}"
        yield failed("guards", text, hint)
    else:
        yield ok("guards", "the log can only be added to")
    try:
        startup.demand_room()
    except CommandError as error:
        yield failed("pool", str(error), "Lower AGENTWEB_DATABASE_POOL.")


def check_clock() -> Iterator[Line]:
    began = time.time()
    there, ended = read_database_time().timestamp(), time.time()
    apart = max(began - there, there - ended, 0.0)
    text, hint = f"{apart:.1f} s from the database's", "Run a time service (NTP) on both machines."
    if apart > FAR:
        yield failed("clock", text, hint)
    elif apart > NEAR:
        yield warn("clock", text, hint)
    else:
        yield ok("clock", text)


CHECKS = (check_server, check_schema, check_clock)
