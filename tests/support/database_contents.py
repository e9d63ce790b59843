"""What migrations leave in a database, to compare two ways of making one.

Left out is what means nothing: the order of columns, the numbers of rows that others name, and the
names that PostgreSQL chose for checks of single columns, which stay when a column is renamed.
"""

from __future__ import annotations

import re
from typing import Any

from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection

from conversations.models import AnchorMark, ApiModel, ModelPrice, MoneyRecord, SiteChain

#: Without its counts of rows, which it has after a migration of rows alone.
_SQLITE = """
  SELECT type, tbl_name, sql FROM sqlite_master
  WHERE sql IS NOT NULL AND tbl_name NOT LIKE 'sqlite_stat%'"""
_POSTGRESQL = {
    "columns": """
      SELECT table_name, column_name, udt_name, character_maximum_length, is_nullable,
        column_default, identity_generation, collation_name
      FROM information_schema.columns WHERE table_schema = current_schema()""",
    "constraints": """
      SELECT conrelid::regclass::text, contype::text, condeferrable, condeferred,
        pg_get_constraintdef(oid), CASE WHEN conname ~ '_(not_null|check)[0-9]*$' THEN ''
          ELSE conname END
      FROM pg_constraint WHERE connamespace = current_schema()::regnamespace""",
    "indexes": "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = current_schema()",
    "triggers": "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
    "functions": """
      SELECT proname, pg_get_functiondef(oid), proacl::text FROM pg_proc
      WHERE pronamespace = current_schema()::regnamespace AND prokind = 'f'""",
    "rights": """
      SELECT relname, relkind, relacl::text FROM pg_class
      WHERE relnamespace = current_schema()::regnamespace""",
}
#: Texts and lists of them as PostgreSQL writes them: in another way for an expression that was made
#: of such a text again, as in a database that was copied.
_CAST, _TEXT = re.compile(r"::(?:character varying|text)(?:\[\])?"), re.compile(r"\(('[^']*')\)")
_LIST = re.compile(r"\(\((ARRAY\[[^]]*\])\)\)")


def describe() -> dict[str, list[list[str]]]:
    return describe_tables() | describe_rows()


def describe_tables() -> dict[str, list[list[str]]]:
    """Return tables, indexes, constraints, triggers, functions and rights, as sorted texts."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(_SQLITE)
            return {"objects": sorted([kind, name, *_split(sql)] for kind, name, sql in cursor)}
        found = {}
        for name, asked in _POSTGRESQL.items():
            cursor.execute(asked)
            found[name] = sorted([_write(value) for value in row] for row in cursor.fetchall())
    return found


def _write(value: object) -> str:
    return _LIST.sub(r"(\1)", _TEXT.sub(r"\1", _CAST.sub("", str(value))))


def _split(sql: str) -> list[str]:
    """Return the columns and constraints of a table in a fixed order; other statements whole."""
    if not sql.startswith("CREATE TABLE"):
        return [sql]
    depth, parts = 0, [""]
    for sign in sql[sql.index("(") + 1 : sql.rindex(")")]:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return sorted(re.sub(r"\s+", " ", part).strip() for part in parts)


def describe_rows() -> dict[str, list[list[str]]]:
    """Return the rows that migrations and what runs after them leave in a new database."""
    rows: dict[str, Any] = {
        "models": ApiModel.objects.order_by("pk").values_list(),
        "prices": ModelPrice.objects.order_by("pk").values_list(),
        "records": MoneyRecord.objects.order_by("pk").values_list(
            "table", "key", "link", "content"
        ),
        "site chain": SiteChain.objects.values_list("pk", "links"),
        "anchor mark": AnchorMark.objects.values_list("pk"),
        "kinds": ContentType.objects.order_by("app_label", "model").values_list(
            "app_label", "model"
        ),
        "roles": Group.objects.order_by("name", "permissions__codename").values_list(
            "name", "permissions__content_type__app_label", "permissions__codename"
        ),
        "rights": Permission.objects.order_by("content_type__app_label", "codename").values_list(
            "content_type__app_label", "codename", "name"
        ),
    }
    return {name: [[str(value) for value in row] for row in found] for name, found in rows.items()}
