"""A per-process cache of settings rows (prices, models, rules, groups, budgets) by their version.

Each step of a turn needs the same few rows, which change once a month. The version is one number in
the database; triggers set a new random one in every transaction that changes such a table. It is
random so that a rolled-back version is never used again. The status of an MCP server, which is
stored in its row with each check, is not a setting.

The cache is used only inside `reading_settings`, which lasts no longer than a transaction or the
rendering of a frame. The version is read there once, when it is first needed; or a query that runs
anyway reads it (`VERSION`). All other code reads the tables.
"""

# ruff: noqa: S608 - the names are those of our own tables
from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar
from zlib import crc32

from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.db.models import Model

from conversations.log.columns import read_columns
from conversations.models import (
    ApiModel,
    Budget,
    CostCentre,
    EffortRule,
    EgressRule,
    McpServer,
    McpTool,
    ModelPrice,
    ToolRule,
    TurnCap,
    User,
)

P = ParamSpec("P")
T = TypeVar("T")
#: The models whose rows are settings; that of the membership in groups is a table only.
_MODELS = (
    ApiModel, Budget, CostCentre, EffortRule, EgressRule, Group, McpServer, McpTool, ModelPrice,
    ToolRule, TurnCap, User.groups.through, ApiModel.groups.through,
)  # fmt: skip
#: Columns that are no settings, by table: what is cached may have them of an earlier moment.
_STATUS = {
    McpServer._meta.db_table: (
        "state", "state_since", "last_seen_at", "last_error", "last_error_at", "says",
        "check_asked_at",
    ),
    McpTool._meta.db_table: ("listed_at",),
}  # fmt: skip
#: Results that one process keeps at most.
_MOST = 20_000
_TABLE = "conversations_settingsversion"
_BUMP = {
    "sqlite": f'UPDATE "{_TABLE}" SET version = random()',
    "postgresql": f'UPDATE "{_TABLE}" SET version = floor(random() * 9e18)::bigint',
}
_FUNCTION = f"""
CREATE OR REPLACE FUNCTION "{_TABLE}_change"() RETURNS trigger LANGUAGE plpgsql
AS $$ BEGIN {_BUMP["postgresql"]}; RETURN NULL; END $$"""


class _Cache:
    """What this process has read of one version of the settings."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.results: dict[object, object] = {}


class _Reading(threading.local):
    """What this thread reads by now. Not a context variable: a task that a request starts, such as
    a turn, would inherit it and never see a change.
    """

    is_on = False
    #: None: the version is not known yet.
    cache: _Cache | None = None


#: The version as a column of any statement, for `note_settings_version`.
VERSION = f'(SELECT version FROM "{_TABLE}")'
_cache, _reading = _Cache(0), _Reading()


@contextmanager
def reading_settings() -> Iterator[None]:
    """Use within the block what is cached of the present settings; one statement at most.

    Within another one it goes on with the settings of that.
    """
    if _reading.is_on:
        yield
        return
    _reading.is_on = True
    try:
        yield
    finally:
        _reading.is_on, _reading.cache = False, None


def note_settings_version(version: int) -> None:
    """Take the version that a statement has read as VERSION, if this frame has none yet."""
    global _cache  # noqa: PLW0603 - one for all threads; replaced, never changed to another version
    if not _reading.is_on or _reading.cache is not None:
        return
    if _cache.version != version or len(_cache.results) > _MOST:
        _cache = _Cache(version)
    _reading.cache = _cache if _cache.version == version else _Cache(version)


def is_reading() -> bool:
    """Return whether this runs within `reading_settings`."""
    return _reading.is_on


def _find_cache() -> _Cache | None:
    if _reading.is_on and _reading.cache is None:
        note_settings_version(_read_version())
    return _reading.cache


def cached_by_settings_version(function: Callable[P, T]) -> Callable[P, T]:
    """Cache the results of a function of the settings, by its arguments, within `reading_settings`.

    A result must not be changed, and must not depend on anything that is no setting.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        cache = _find_cache()
        if cache is None:
            return function(*args, **kwargs)
        key = function, args, tuple(kwargs.items())
        if key not in cache.results:
            cache.results[key] = function(*args, **kwargs)
        found: T = cache.results[key]  # type: ignore[assignment]
        return found

    return call


def may_have_rows(model: type[Model]) -> bool:
    """Return whether a table of settings may have rows at all, so that a person's need be read.

    Most sites have no rules for groups, and a process meets most people for the first time.
    """
    return not _reading.is_on or _has_rows(model)


@cached_by_settings_version
def _has_rows(model: type[Model]) -> bool:
    return model._default_manager.exists()


def _read_version() -> int:
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT version FROM "{_TABLE}"')
        return int(cursor.fetchone()[0])


def install_settings_version(using: str = "default", **_: Any) -> None:
    """Install the table and its triggers where they are missing; runs after every migration."""
    if connection.alias != using:
        return
    tables = read_columns()
    wanted = [one._meta.db_table for one in _MODELS if one._meta.db_table in tables]
    with transaction.atomic(), connection.cursor() as cursor:
        if _TABLE not in tables:
            cursor.execute(f'CREATE TABLE "{_TABLE}" (version bigint NOT NULL)')
            cursor.execute(f'INSERT INTO "{_TABLE}" VALUES (0)')
            if connection.vendor == "postgresql":
                cursor.execute(_FUNCTION)
        present = _read_present(cursor)
        written = {
            name: (table, statement)
            for table in wanted
            for name, statement in _write_triggers(table, _list_settings(table, tables[table]))
        }
        missing = [statement for name, (_, statement) in written.items() if name not in present]
        for name, table in present.items():
            if name.startswith(f"{table}_settings") and name not in written:
                _drop_trigger(cursor, name, table)
        for statement in missing:
            cursor.execute(statement)
        if missing:
            # Without its trigger a table may have been changed.
            cursor.execute(_BUMP[connection.vendor])


def _read_present(cursor: Any) -> dict[str, str]:
    """Return the tables of all triggers by their names."""
    if connection.vendor == "postgresql":
        cursor.execute(
            "SELECT t.tgname, c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
            " WHERE t.tgenabled IN ('O', 'A')"
        )
    else:
        cursor.execute("SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger'")
    return dict(cursor.fetchall())


def _drop_trigger(cursor: Any, name: str, table: str) -> None:
    of_table = f' ON "{table}"' if connection.vendor == "postgresql" else ""
    cursor.execute(f'DROP TRIGGER "{name}"{of_table}')


def _list_settings(table: str, columns: set[str]) -> list[str]:
    """Return the columns of a table that are settings; none for a table that has no others."""
    status = _STATUS.get(table, ())
    return sorted(columns.difference(status)) if status else []


def _write_triggers(table: str, columns: Sequence[str]) -> list[tuple[str, str]]:
    """Return the triggers of a table by their names, for updates of these columns if any."""
    name, then, of = f"{table}_settings", f'EXECUTE FUNCTION "{_TABLE}_change"()', ""
    if columns:
        of = f" OF {', '.join(columns)}"
        # A table that has got another column gets another trigger.
        name += f"_{crc32(of.encode()):08x}"
    if connection.vendor == "postgresql":
        when = f'AFTER INSERT OR UPDATE{of} OR DELETE OR TRUNCATE ON "{table}" FOR EACH STATEMENT'
        return [(name, f'CREATE TRIGGER "{name}" {when} {then}')]
    body = f"BEGIN {_BUMP['sqlite']}; END"
    verbs = {"insert": "INSERT", "update": f"UPDATE{of}", "delete": "DELETE"}
    return [
        (f"{name}_{verb}", f'CREATE TRIGGER "{name}_{verb}" AFTER {event} ON "{table}" {body}')
        for verb, event in verbs.items()
    ]
