"""The application's own role on PostgreSQL: it may add to the record and never change it.

Where AGENTWEB_MIGRATE_DATABASE_URL names the owner of the tables, migrations run as that role and
the application as the role of DATABASE_URL. The application's role reads all tables, writes tables
that may change, and can only insert into append-only tables. It cannot create, drop or disable
anything, and erases only through the functions of log/erase_functions.py. The rights are granted
after every migration, so that new tables have them.
"""

# ruff: noqa: S608 - the names are those of our own tables
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db import connection, connections, transaction

from conversations.log.erase_functions import FUNCTIONS
from conversations.log.triggers import list_guarded_tables

_MIGRATIONS = "django_migrations"


class RoleMissing(Exception):
    """The role does not exist; the message says what to do."""

    code = "role_missing"


def read_app_role() -> str:
    """Return the name of the role the application runs as."""
    return str(settings.DATABASES["default"].get("USER") or "")


@contextmanager
def connect_as_owner() -> Iterator[None]:
    """Connect as the owner, where one is set; for one thread, at start."""
    if not settings.MIGRATE_DATABASE:
        yield
        return
    with use_databases({"default": dict(settings.MIGRATE_DATABASE)}):
        yield


@contextmanager
def use_databases(databases: dict[str, dict[str, Any]]) -> Iterator[None]:
    """Replace Django's databases of these names within the block, for one thread."""
    kept = connections.settings
    others = connections.configure_settings(databases)
    _forget_connections()
    connections.settings = {**kept, **others}
    try:
        yield
    finally:
        _forget_connections()
        connections.settings = kept


def _forget_connections() -> None:
    for one in connections.all(initialized_only=True):
        one.close()
        del connections[one.alias]


def grant_rights(using: str = "default", **_: Any) -> None:
    """Grant the application's role its rights, where another role is the owner."""
    if connection.alias != using or connection.vendor != "postgresql":
        return
    if not settings.MIGRATE_DATABASE or connection.settings_dict["USER"] == read_app_role():
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [read_app_role()])
        if cursor.fetchone() is None:
            raise RoleMissing(
                f"there is no role {read_app_role()!r}: make it with manage.py roles --apply"
            )
        for statement in write_rights(read_app_role()):
            cursor.execute(statement)


def write_rights(role: str) -> list[str]:
    """Return the statements that grant the role its rights on the present tables."""
    name = connection.ops.quote_name(role)
    present = set(connection.introspection.table_names())
    guarded = set(list_guarded_tables()) & present
    others = present - guarded - {_MIGRATIONS}
    rows = [
        f"REVOKE ALL ON ALL TABLES IN SCHEMA {_read_schema()} FROM {name}",
        f"REVOKE CREATE ON SCHEMA {_read_schema()} FROM PUBLIC",
        f"REVOKE CREATE ON SCHEMA {_read_schema()} FROM {name}",
        f"GRANT USAGE ON SCHEMA {_read_schema()} TO {name}",
        f"GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {_read_schema()} TO {name}",
    ]
    for tables, verbs in (
        (guarded, "SELECT, INSERT"),
        (others, "SELECT, INSERT, UPDATE, DELETE"),
        ({_MIGRATIONS} & present, "SELECT"),
    ):
        if tables:
            names = ", ".join(connection.ops.quote_name(table) for table in sorted(tables))
            rows.append(f"GRANT {verbs} ON {names} TO {name}")
    if guarded:
        rows += [f"GRANT EXECUTE ON FUNCTION {function} TO {name}" for function in FUNCTIONS]
    return rows


def write_role(role: str) -> str:
    """Return the statement that creates the role unless it exists; its password is set by hand."""
    name, text = connection.ops.quote_name(role), role.replace("'", "''")
    return (
        f"DO $$ BEGIN IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = '{text}')"
        f" THEN CREATE ROLE {name} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE; END IF; END $$"
    )


def _read_schema() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT quote_ident(current_schema())")
        return str(cursor.fetchone()[0])
