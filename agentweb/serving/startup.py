"""What a process requires before it serves or works: a database migrated to this version.

A server migrates the database itself; a worker or beat does not. They refuse an outdated one, where
they would run old code on new tables, or write without the triggers that protect the log.
"""

from __future__ import annotations

import ipaddress
import re

from django.conf import settings
from django.core.management import CommandError
from django.db import OperationalError, ProgrammingError, connection
from psycopg.errors import InsufficientPrivilege, UndefinedColumn, UndefinedTable

from agentweb.serving.checks import is_weak
from conversations.budgets.prices import list_enabled_models
from conversations.conf import conf
from conversations.log.triggers import find_missing_guards
from conversations.operations.db_damage import find_damage
from conversations.operations.move.half_moved import is_half_moved

#: Connections of the database server left for others: its own, backups, people with a shell.
SPARE_CONNECTIONS = 10
#: What PostgreSQL says of a database that was not migrated to this version.
_LACKING = (UndefinedColumn, UndefinedTable)


def demand_fit_address(host: str) -> None:
    """Refuse to listen on a public address with development settings."""
    if is_loopback(host):
        return
    if settings.DEBUG:
        raise CommandError(
            f"AGENTWEB_DEBUG is on and {host} can be reached from other machines, to which error"
            " pages would show the settings; unset AGENTWEB_DEBUG or listen on 127.0.0.1"
        )
    if is_weak(settings.SECRET_KEY):
        raise CommandError(
            f"SECRET_KEY is weak and {host} can be reached from other machines, which could forge"
            " sessions; set it to the output of `openssl rand -hex 32`, or leave it out: then one"
            " is made and kept"
        )


def demand_workers() -> None:
    """Refuse to start a worker or beat where turns run in the web process."""
    if conf.run_turns_in != "worker":
        raise CommandError(
            "turns run in the web process; to run them in workers set AGENTWEB_RUN_TURNS_IN=worker"
            " for all processes"
        )


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def demand_ready_database() -> None:
    """Refuse a database that does not match this version; for processes that do not migrate it."""
    demand_whole_site()
    if missing := list_unapplied_migrations():
        raise CommandError(
            f"the database lacks {len(missing)} migrations, the first is {missing[0]}; start"
            " `manage.py serve` of this version first, or run `manage.py migrate`"
        )
    demand_guards()
    demand_room()


def demand_sound() -> None:
    """Refuse a damaged SQLite file, or half of a site, before anything is written to it."""
    if words := find_damage():
        raise CommandError(words)
    demand_whole_site()


def demand_reachable() -> None:
    """Refuse a database that cannot be connected to; the log has the driver's reasons."""
    try:
        connection.ensure_connection()
    except OperationalError as error:
        raise CommandError(f"the database cannot be reached: {error}") from error


def describe_unusable(error: Exception) -> str:
    """Return what a command says of a database that it could not use; "" for another error."""
    is_lacking = isinstance(error.__cause__, _LACKING) or bool(
        re.match("no such (table|column)", str(error))
    )
    is_refused = isinstance(error.__cause__, InsufficientPrivilege)
    if isinstance(error, ProgrammingError) and not (is_lacking or is_refused):
        return ""
    database = connection.settings_dict
    is_file = connection.vendor == "sqlite"
    place = database["NAME"] if is_file else f"{database['NAME']} on {database['HOST']}"
    if is_lacking:
        return (
            f"the database {place} is not of this version: start `manage.py serve`, or run"
            " `manage.py migrate`; if it is not the site's, correct DATABASE_URL or"
            " AGENTWEB_DATA_DIR"
        )
    why = " ".join(str(error).split()) or type(error).__name__
    return f"the database {place} cannot be used: {why}; `manage.py doctor` looks at all of it"


def demand_whole_site() -> None:
    demand_reachable()
    if is_half_moved():
        raise CommandError(
            "a move of the site into this database was interrupted: set DATABASE_URL to the old"
            " database and run `manage.py move` again, which goes on"
        )


def demand_guards() -> None:
    if tables := find_missing_guards():
        raise CommandError(
            f"append-only triggers are missing on: {', '.join(tables)}; the log could be changed"
            " unseen. Run `manage.py migrate`, which puts them back, and `manage.py verify`"
        )


def demand_room() -> None:
    """Refuse a connection pool larger than the database server allows."""
    if connection.vendor != "postgresql":
        return
    most = read_max_connections()
    if most < settings.DATABASE_POOL + SPARE_CONNECTIONS:
        raise CommandError(
            f"AGENTWEB_DATABASE_POOL is {settings.DATABASE_POOL}, but PostgreSQL takes {most}"
            f" connections in all, of which {SPARE_CONNECTIONS} are to be spare; lower it, or raise"
            " max_connections"
        )


def read_max_connections() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SHOW max_connections")
        return int(cursor.fetchone()[0])


def list_missing_models() -> list[tuple[str, str]]:
    """Return each setting that names a model which nobody can use, and that name."""
    enabled = list_enabled_models()
    named = [
        (f"AGENTWEB_{setting.upper()}", getattr(conf, setting))
        for setting in ("model", "summary_model", "fallback_model", "title_model")
    ]
    unnamed = {("AGENTWEB_TITLE_MODEL", "off")}
    return [one for one in named if one[1] and one not in unnamed and one[1] not in enabled]


def list_unapplied_migrations() -> list[str]:
    """Return the names of unapplied migrations in order; raises CommandError if unreachable."""
    from django.db.migrations.executor import MigrationExecutor

    demand_reachable()
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]
