"""The erase functions: what may be removed from the append-only tables, and when.

On PostgreSQL they are functions with the rights of the tables' owner, so that the application's own
role needs no right to delete. A conversation is removed only from the trash, not under a legal
hold, and only if its erasure is recorded with the end of its chain; a text only if no row
references it. On SQLite the same statements run within `allow_erasing`.
"""

# ruff: noqa: S608 - the names are those of our own tables
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.apps import apps
from django.db import connection, models
from django.db.models import ForeignKey

from conversations.log.chain import OWNED
from conversations.log.findings import split_chunks
from conversations.log.triggers import allow_erasing
from conversations.models import (
    LIVE,
    ApiCall,
    Blob,
    Chained,
    Conversation,
    Envelope,
    Erasure,
    HoldRelease,
    LegalHold,
    Turn,
)

_TEXTS: tuple[type[Envelope | Blob], ...] = (Envelope, Blob)
_NAME = "agentweb_erase"
#: The functions with their argument types, as in GRANT.
FUNCTIONS = (f"{_NAME}_log(bigint)", f"{_NAME}_texts(text[])")
_OPEN = "PERFORM set_config('agentweb.erasing', 'on', true)"
_CLOSE = "PERFORM set_config('agentweb.erasing', 'off', true)"
_DEMAND = f"""
IF NOT EXISTS (
  SELECT 1 FROM "{Conversation._meta.db_table}" c JOIN "{Erasure._meta.db_table}" e
    ON e.conversation = c.public_id AND e.links = c.links AND e.tail = c.chain
  WHERE c.id = key AND c.deleted_at IS NOT NULL AND c.erase_at IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM "{Turn._meta.db_table}" t WHERE t.conversation_id = key
      AND t.state IN ({", ".join(f"'{state}'" for state in LIVE)}))
    AND NOT EXISTS (
      SELECT 1 FROM "{LegalHold._meta.db_table}" h WHERE NOT EXISTS (
        SELECT 1 FROM "{HoldRelease._meta.db_table}" r WHERE r.hold_id = h.id)
      AND (h.conversation = c.public_id OR h.conversation IS NULL AND h.owner_id = c.owner_id))
) THEN RAISE EXCEPTION 'conversation % is not to be erased, or its erasure is not recorded', key
  USING ERRCODE = 'restrict_violation'; END IF
"""


def erase_log(*, conversation_id: int) -> None:
    """Remove the log of a conversation whose erasure is recorded already."""
    if connection.vendor == "postgresql":
        _run(f"SELECT {_NAME}_log(%s)", [conversation_id])
        return
    with allow_erasing():
        for statement in _write_log_deletes("%s"):
            _run(statement, [conversation_id])


def erase_texts(*, digests: Iterable[str]) -> None:
    """Remove those of the texts that no row references."""
    for some in split_chunks(sorted(digests)):
        if connection.vendor == "postgresql":
            _run(f"SELECT {_NAME}_texts(%s)", [some])
            continue
        with allow_erasing():
            for statement in _write_orphan_deletes(f"IN ({', '.join(['%s'] * len(some))})"):
                _run(statement, some)


def install_erase_functions(using: str = "default", **_: Any) -> None:
    """Create the functions on PostgreSQL, or update them to the present tables."""
    if connection.alias != using or connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s)", [Erasure._meta.db_table])
        if cursor.fetchone()[0] is None:
            return
        cursor.execute("SELECT quote_ident(current_schema())")
        path = f"{cursor.fetchone()[0]}, pg_temp"
        for name, key, body in (
            ("log", "bigint", (_DEMAND, *_write_log_deletes("key"))),
            ("texts", "text[]", _write_orphan_deletes("= ANY(key)")),
        ):
            whole = "; ".join((_OPEN, *body, _CLOSE))
            cursor.execute(
                f"CREATE OR REPLACE FUNCTION {_NAME}_{name}(key {key}) RETURNS void"
                f" LANGUAGE plpgsql SECURITY DEFINER SET search_path = {path}"
                f" AS $$ BEGIN {whole}; END $$"
            )
            cursor.execute(f"REVOKE ALL ON FUNCTION {_NAME}_{name}({key}) FROM PUBLIC")


def _write_log_deletes(key: str) -> list[str]:
    """Return the statements that remove a conversation's chained rows; calls come last, because
    others reference them.
    """
    kinds = sorted(OWNED, key=lambda kind: kind is ApiCall)
    return [
        f'DELETE FROM "{kind._meta.db_table}" WHERE {_write_owner_condition(kind, key)}'
        for kind in kinds
    ]


def _write_owner_condition(kind: type[Chained], key: str) -> str:
    if OWNED[kind] == "conversation":
        return f"conversation_id = {key}"
    calls = ApiCall._meta.db_table
    return f'call_id IN (SELECT id FROM "{calls}" WHERE conversation_id = {key})'


def _write_orphan_deletes(which: str) -> list[str]:
    """Return the statements that remove texts which no column of any table references."""
    rows = []
    for kind in _TEXTS:
        table = kind._meta.db_table
        named = [
            f'EXISTS (SELECT 1 FROM "{other._meta.db_table}" o'
            f' WHERE o."{column}" = "{table}".digest)'
            for other, column in _list_references(kind)
        ]
        free = " AND ".join(f"NOT {one}" for one in named)
        rows.append(f'DELETE FROM "{table}" WHERE digest {which} AND {free}')
    return rows


def _list_references(kind: type[Envelope | Blob]) -> list[tuple[type[models.Model], str]]:
    return [
        (other, field.column)
        for other in apps.get_models()
        for field in other._meta.concrete_fields
        if isinstance(field, ForeignKey) and field.related_model is kind
    ]


def _run(statement: str, values: list[Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
