"""A damaged SQLite file: detected when the server starts, or by the first statement that fails.

After that this process only reads: writes may increase the damage, and a restored backup would lose
them anyway.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import DatabaseError, OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper

logger = logging.getLogger("agentweb.audit")

_WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE", "ALTER", "DROP")
#: SQLite's messages for a malformed page and for a file that is no database.
_SAYINGS = ("malformed", "is not a database")
ADVICE = (
    "Nothing more is written to it. Stop the server, keep the file, and put the last backup back"
    " with manage.py restore FILE (manage.py backup FILE makes one); what the file still holds can"
    " be saved with the sqlite3 shell's .recover"
)


class DatabaseDamaged(OperationalError):
    """The database is damaged; the message says so, and what to do."""

    code = "database_damaged"


@dataclass(slots=True)
class _Damage:
    """The damage that this process has detected."""

    words: str = ""


_damage = _Damage()


def find_damage() -> str:
    """Check the full SQLite file; return a description of the damage, "" for none."""
    path = Path(connection.settings_dict["NAME"])
    if connection.vendor != "sqlite" or not path.exists():
        return ""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=rw", uri=True, timeout=20)) as database:
            report = [row[0] for row in database.execute("PRAGMA quick_check(3)")]
    except sqlite3.DatabaseError as error:
        if not _is_damage(error):
            raise
        report = [str(error)]
    if report == ["ok"]:
        return ""
    return f"the database {path} is damaged: {'; '.join(report)}. {ADVICE}"


def demand_undamaged() -> None:
    """Raise DatabaseDamaged when this process has detected damage."""
    if _damage.words:
        raise DatabaseDamaged(_damage.words)


def watch_statements(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Watch every statement of a SQLite connection for damage."""
    if connection.vendor == "sqlite" and _run_watched not in connection.execute_wrappers:
        connection.execute_wrappers.append(_run_watched)


def _run_watched(
    execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]
) -> Any:
    if _damage.words and sql.lstrip().upper().startswith(_WRITES):
        raise DatabaseDamaged(_damage.words)
    try:
        return execute(sql, params, many, context)
    except DatabaseError as error:
        if not _is_damage(error):
            raise
        if not _damage.words:
            _damage.words = f"the database is damaged: {error}. {ADVICE}"
            logger.critical("%s", _damage.words)
        raise DatabaseDamaged(_damage.words) from error


def _is_damage(error: Exception) -> bool:
    return any(saying in str(error) for saying in _SAYINGS)
