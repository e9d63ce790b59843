"""The flush after a test that commits: only changed tables are emptied, with their triggers off.

Django would empty all sixty tables after such a test, which costs PostgreSQL more than most tests
do. Here one query lists the tables that differ from their state after the migrations; only these
are emptied and get the migrations' rows back (models and prices, permissions). The triggers of the
append-only tables would refuse that, so they are opened for the flush alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import connection, models, transaction
from django.test import TransactionTestCase

from conversations.log.triggers import allow_erasing


@dataclass(frozen=True, slots=True)
class Seed:
    """The rows of a table after the migrations, to compare and to restore."""

    kind: type[models.Model]
    rows: tuple[tuple[Any, ...], ...]
    objects: tuple[models.Model, ...]

    @property
    def is_whole(self) -> bool:
        return _rows(self.kind) == self.rows


def read_seed() -> dict[str, Seed]:
    """Return the rows of the tables that are not empty after the migrations, by table name."""
    seeds = {}
    # With the tables of relations: a role is a group with its permissions.
    for kind in apps.get_models(include_auto_created=True):
        if rows := _rows(kind):
            objects = tuple(kind._base_manager.all())
            seeds[kind._meta.db_table] = Seed(kind, rows, objects)
    return seeds


def keep_seed(seeds: dict[str, Seed]) -> None:
    """Replace Django's flush by this one."""
    tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
    empty = tuple(table for table in sorted(tables) if table not in seeds)

    def flush(_: TransactionTestCase) -> None:
        with allow_erasing(), transaction.atomic():
            broken = [table for table, seed in seeds.items() if not seed.is_whole]
            with connection.cursor() as cursor:
                for table in (*_filled(cursor, empty), *broken):
                    cursor.execute(f"DELETE FROM {connection.ops.quote_name(table)}")
            for table in broken:
                seeds[table].kind._base_manager.bulk_create(seeds[table].objects)

    TransactionTestCase._fixture_teardown = flush  # type: ignore[attr-defined]


def _filled(cursor: Any, tables: tuple[str, ...]) -> list[str]:
    """Return the tables that have a row."""
    name = connection.ops.quote_name
    asked = (f"SELECT '{one}' WHERE EXISTS (SELECT 1 FROM {name(one)})" for one in tables)
    cursor.execute(" UNION ALL ".join(asked))
    return [row[0] for row in cursor.fetchall()]


def _rows(kind: type[models.Model]) -> tuple[tuple[Any, ...], ...]:
    return tuple(kind._base_manager.order_by("pk").values_list())
