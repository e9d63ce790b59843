"""How the databases answer the admin's long lists: in the order of an index, page by page."""

from __future__ import annotations

import re
from datetime import date

import pytest
from django.db import connection, transaction
from django.db.models import Model
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from conversations.models import ApiCall, LedgerEntry, Reservation, Transformation, Turn
from conversations.templatetags.dates import list_steps
from tests.support.stored_turns import played
from tests.web.test_admin_review import superuser

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("model", "query"),
    [
        (ApiCall, ""), (ApiCall, "?sent_at__year={year}"), (ApiCall, "?purpose__exact=title"),
        (Turn, ""), (Turn, "?created_at__year={year}&created_at__month={month}"),
        (Transformation, ""), (Transformation, "?created_at__year={year}"),
        (Transformation, "?kind__exact=compaction"),
        (LedgerEntry, ""), (LedgerEntry, "?created_at__year={year}"),
        (LedgerEntry, "?kind__exact=reserve"), (Reservation, ""),
    ],
)  # fmt: skip
def test_a_long_list_reads_its_page_from_an_index(model: type[Model], query: str) -> None:
    played("ada")
    at = Turn.objects.latest("pk").created_at
    url = reverse(f"admin:conversations_{model._meta.model_name}_changelist")
    client = superuser()
    with CaptureQueriesContext(connection) as found:
        response = client.get(url + query.format(year=at.year, month=at.month))
    assert response.status_code == 200
    table = f'FROM "{model._meta.db_table}"'
    asked = [each["sql"] for each in found if table in each["sql"]]
    # As few rows as here are on one page, so its query alone has no limit.
    [shown] = [sql for sql in asked if sql.endswith("DESC")]
    assert list_sorts(shown) == []
    # SQLite would begin at the smallest of joined tables, once it has counted their rows.
    assert " JOIN " not in shown
    assert not [sql for sql in asked if "DISTINCT" in sql]


@pytest.mark.parametrize("column", [5, 6, 7])
def test_chats_are_ordered_by_what_they_lost_without_reading_its_rows(column: int) -> None:
    played("ada")
    url = reverse("admin:conversations_conversation_changelist") + f"?o=-{column}"
    client = superuser()
    with CaptureQueriesContext(connection) as found:
        assert client.get(url).status_code == 200
    # The figures of the page itself are added up without an order.
    [asked] = [
        sql for sql in (each["sql"] for each in found) if re.search("GROUP BY.*ORDER BY", sql)
    ]
    whole = "USING COVERING INDEX" if connection.vendor == "sqlite" else "Index Only Scan using"
    plan = list_plan(asked, "bitmapscan")
    assert [step for step in plan if f"{whole} transformation_figures" in step]


def list_sorts(sql: str) -> list[str]:
    """Return the steps of a query's plan that need all rows before the first."""
    mark = "TEMP B-TREE" if connection.vendor == "sqlite" else "Sort"
    return [step for step in list_plan(sql, "sort") if mark in step]


def list_plan(sql: str, *without: str) -> list[str]:
    """Return the steps of a query's plan; PostgreSQL avoids scans of tables, and `without`."""
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            return [row[-1] for row in cursor.fetchall()]
        # A table of few rows is scanned and sorted although there is an index.
        for step in ("seqscan", *without):
            cursor.execute(f"SET LOCAL enable_{step} = off")
        cursor.execute(f"EXPLAIN {sql}")
        return [row[0] for row in cursor.fetchall()]


def test_the_bar_of_dates_offers_what_lies_between_the_first_row_and_the_last() -> None:
    first, last = date(2025, 11, 29), date(2026, 2, 2)
    assert [*list_steps(first, last, [])] == [[2025], [2026]]
    assert [*list_steps(first, last, [2025])] == [[2025, 11], [2025, 12]]
    assert [*list_steps(first, last, [2026])] == [[2026, 1], [2026, 2]]
    assert [*list_steps(first, last, [2025, 11])] == [[2025, 11, 29], [2025, 11, 30]]
    assert [*list_steps(first, last, [2026, 2, 1])] == [[2026, 2, 1]]
    for wrong in ([2027], [2026, 13], [2026, 2, 30], [99999, 1], [0, 1, 1], [-1]):
        assert [*list_steps(first, last, wrong)] == []
