"""The columns of the tables, read in one statement."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations.log.columns import read_columns

pytestmark = pytest.mark.django_db


def test_the_columns_of_every_model_are_those_that_django_finds() -> None:
    with CaptureQueriesContext(connection) as queries:
        found = read_columns()
    assert len(queries) == 1
    tables = {model._meta.db_table for model in apps.get_models(include_auto_created=True)}
    assert len(tables) > 70
    with connection.cursor() as cursor:
        for table in tables:
            rows = connection.introspection.get_table_description(cursor, table)
            assert found[table] == {row.name for row in rows}


def test_a_column_that_was_dropped_is_not_one_of_them() -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE short_lived (kept integer, dropped integer)")
        cursor.execute("ALTER TABLE short_lived DROP COLUMN dropped")
        assert read_columns()["short_lived"] == {"kept"}
        cursor.execute("DROP TABLE short_lived")
    assert "short_lived" not in read_columns()
