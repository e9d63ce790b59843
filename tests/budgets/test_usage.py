"""What calls have cost: the same sums from every side, and those of the ledger."""

from __future__ import annotations

import csv
import io
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.db.models import Sum
from django.test.utils import CaptureQueriesContext
from django.utils import timezone, translation
from hypothesis import given
from hypothesis import strategies as st

from conversations.budgets.usage import days
from conversations.budgets.usage.allowance import list_allowances
from conversations.budgets.usage.cells import format_dollars, write_csv_lines
from conversations.budgets.usage.charts import draw_columns, draw_turns_by_day, format_cents
from conversations.budgets.usage.csv_rows import SHEETS
from conversations.budgets.usage.days import Span
from conversations.budgets.usage.percentiles import compute_spread
from conversations.budgets.usage.person import sum_usage
from conversations.budgets.usage.site import sum_site
from conversations.budgets.usage.statement import HEAD, list_statement_rows
from conversations.budgets.usage.sums import add_figures
from conversations.library.conversations import delete_conversation
from conversations.library.erase import erase_conversation
from conversations.models import ApiCall, ApiResult, LedgerEntry, Transformation
from tests.support import people_and_turns, stored_turns
from tests.support.stored_turns import played

TODAY = date(2026, 11, 21)


def this_month() -> Span:
    return days.make_named_span("month", timezone.now().date())


def erased(name: str) -> None:
    place = played(name)
    place.conversation.refresh_from_db()
    delete_conversation(conversation=place.conversation)
    later = timezone.now() + timedelta(days=31)
    assert erase_conversation(conversation_id=place.conversation.pk, now=later)


def ledger(user: Any) -> int:
    """Add up what the ledger says was spent in the present windows of a person."""
    entries = LedgerEntry.objects.filter(window__user=user).exclude(kind="reserve")
    return int(entries.aggregate(sum=Sum("amount"))["sum"] or 0)


@pytest.mark.django_db
def test_the_pages_total_of_a_period_is_the_ledgers_also_of_what_was_erased() -> None:
    user = played("ada").user
    before = sum_usage(user, this_month()).total
    assert before.micros == ledger(user) > 0
    erased("ada")
    played("bea")
    found = sum_usage(user, this_month())
    assert found.total.micros == ledger(user) == 2 * before.micros
    assert found.total.input == 2 * before.input
    assert list_allowances(user.pk)[0].spent == found.total.micros
    sides = (found.models, found.purposes, found.conversations)
    assert all(add_figures(line.figures for line in lines) == found.total for lines in sides)
    assert "Erased chats" in {line.name for line in found.conversations}


@pytest.mark.django_db
def test_the_file_has_every_call_once_and_sums_to_the_page() -> None:
    user = played("ada", title="=HYPERLINK(1)").user
    erased("ada")
    rows = list(list_statement_rows(user, this_month()))
    assert rows[0] == HEAD
    assert len(rows) == 1 + ApiCall.objects.count() + 1
    costs = sum(round(float(str(row[9])) * 1_000_000) for row in rows[1:])
    assert costs == sum_usage(user, this_month()).total.micros
    text = b"".join(write_csv_lines(rows)).decode("utf-8-sig")
    read = list(csv.reader(io.StringIO(text)))
    assert {row[1] for row in read[1:]} == {"'=HYPERLINK(1)", ""}
    assert [len(row) for row in read] == [len(HEAD)] * len(read)


@pytest.mark.django_db
def test_a_call_belongs_to_the_day_it_was_sent_on_in_utc() -> None:
    user = played("ada").user
    edges = [
        datetime(2026, 3, 1, 0, 0, tzinfo=UTC), datetime(2026, 3, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2026, 4, 1, 0, 0, tzinfo=UTC),
    ]  # fmt: skip
    with connection.cursor() as cursor:
        where = ' ON "conversations_apicall"' if connection.vendor == "postgresql" else ""
        cursor.execute(f'DROP TRIGGER "conversations_apicall_keep_update"{where}')
    for call, at in zip(ApiCall.objects.order_by("pk"), edges, strict=True):
        ApiCall.objects.filter(pk=call.pk).update(sent_at=at)
    with timezone.override("Pacific/Auckland"):
        march = sum_usage(user, Span(date(2026, 3, 1), date(2026, 3, 31)))
    assert march.total.calls == 2
    assert [group.day for group in march.groups] == ["2026-03-01", "2026-03-31"]
    assert sum_usage(user, Span(date(2026, 4, 1), date(2026, 4, 1))).total.calls == 1


@pytest.mark.django_db
def test_the_site_is_the_sum_of_its_people_and_of_its_models() -> None:
    for name in ("ada", "bea"):
        played(name)
    erased("ada")
    found = sum_site(this_month())
    assert found.total.micros == sum(one.figures.micros for one in found.users)
    assert found.total == add_figures(one.figures for one in found.models)
    people = {one.name: one for one in found.users}
    ada = sum_usage(stored_turns.User.objects.get(username="ada"), this_month())
    assert people["ada"].figures == ada.total
    changes = Transformation.objects.filter(outcome="applied")
    saved = sum(row.tokens_before - row.tokens_after for row in changes)
    assert found.changes.saved == saved > 0
    assert found.changes.applied == changes.count()
    assert (found.changes.requested, found.changes.rejected) == (2, 2)
    assert found.changes.rejected_share == 100
    assert sum(one.changes.saved for one in found.models) == saved
    costs = ApiResult.objects.filter(call__purpose="summary").aggregate(sum=Sum("cost_micros"))
    assert found.cost_of("summary") == costs["sum"] == sum(one.compacting for one in found.users)
    assert found.states == {"done": 2}
    assert found.saved.size == changes.count()
    assert found.errors.size == 4


@pytest.mark.django_db
def test_the_queries_are_as_many_however_many_rows_there_are() -> None:
    counts = []
    for name in ("ada", "bea", "cleo"):
        user = played(name).user
        erased(name)
        with CaptureQueriesContext(connection) as queries:
            sum_site(this_month())
            sum_usage(user, this_month())
        counts.append(len(queries))
    assert len(set(counts)) == 1
    assert counts[0] <= 16


@pytest.mark.parametrize(
    ("language", "days_said", "money", "turns"),
    [
        ("en", "Nov 1", "$0.20", "1,500"),
        ("de", "1. Nov", "$0,20", "1.500"),
        ("fr", "1 Nov", "$0,20", "1\xa0500"),
        ("es", "1 de Nov", "$0,20", "1\xa0500"),
    ],
)
def test_the_axes_of_charts_are_in_the_readers_language(
    language: str, days_said: str, money: str, turns: str
) -> None:
    span = Span(date(2026, 11, 1), date(2026, 11, 3))
    with translation.override(language):
        spent = draw_columns(span, [("2026-11-01", "Sonnet", 800_000)], show=format_cents)
        ended = draw_turns_by_day(span, [("2026-11-01", "done", 1_500)])
    assert spent.words[0].text == ended.words[0].text == days_said
    assert money in [tick.text for tick in spent.ticks]
    assert ended.rows[0].cells == (turns,)


@pytest.mark.django_db
@pytest.mark.parametrize("name", SHEETS)
def test_every_sheet_has_as_many_cells_in_each_row(name: str) -> None:
    played("ada")
    erased("bea")
    head, *rows = SHEETS[name](this_month())
    assert rows
    assert {len(row) for row in rows} == {len(head)}
    assert list(SHEETS[name](Span(date(2020, 1, 1), date(2020, 1, 2)))) == [head]


@pytest.mark.django_db
def test_a_group_of_users_is_found_by_its_transformations_model() -> None:
    place = played("ada")
    Group.objects.create(name="Research").user_set.add(place.user)
    lease = people_and_turns.next_turn(place.conversation)
    people_and_turns.answered(lease)
    place.conversation.model = "claude-haiku-4-5"
    place.conversation.save()
    found = sum_site(this_month())
    assert [one.name for one in found.models] == [stored_turns.MODEL]
    assert found.models[0].changes.applied > 0


@pytest.mark.parametrize(
    ("given", "first", "last"),
    [
        ({}, date(2026, 11, 1), TODAY), ({"period": "month"}, date(2026, 11, 1), TODAY),
        ({"period": "last-month"}, date(2026, 10, 1), date(2026, 10, 31)),
        ({"period": "7"}, date(2026, 11, 15), TODAY), ({"period": "x"}, date(2026, 11, 1), TODAY),
        ({"from": "2026-02-28", "to": "2026-03-01"}, date(2026, 2, 28), date(2026, 3, 1)),
        ({"from": "2026-11-20"}, date(2026, 11, 20), TODAY),
    ],
)  # fmt: skip
def test_a_span_is_read_from_the_address(given: dict[str, str], first: date, last: date) -> None:
    span = days.read_span(given, TODAY)
    assert (span.first, span.last, span.problem) == (first, last, "")
    assert len(span.days) == (last - first).days + 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"from": "x"}, "year-month-day"), ({"to": "2026-11-01"}, "year-month-day"),
        ({"from": "2026-11-02", "to": "2026-11-01"}, "after the last"),
        ({"from": "2024-01-01", "to": "2026-11-01"}, "At most 366 days"),
        ({"from": "9999-12-31", "to": "9999-12-31"}, "At most 366 days"),
    ],
)  # fmt: skip
def test_an_odd_span_is_this_month_and_says_why(given: dict[str, str], words: str) -> None:
    span = days.read_span(given, TODAY)
    assert span.first == date(2026, 11, 1)
    assert words in span.problem


@pytest.mark.parametrize(
    "cell", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "＝1", "＠x", "=\x00"]
)
def test_a_formula_is_a_text_in_the_file(cell: str) -> None:
    (row,) = csv.reader(io.StringIO(b"".join(write_csv_lines([[cell, -5]])).decode("utf-8-sig")))
    assert row[0].startswith("'")
    assert row[1] == "-5"


@given(st.integers(-(10**15), 10**15))
def test_money_is_written_with_all_its_digits(micros: int) -> None:
    whole, part = format_dollars(micros).lstrip("-").split(".")
    assert int(whole) * 1_000_000 + int(part) == abs(micros)
    assert format_dollars(micros).startswith("-") == (micros < 0)


@given(st.lists(st.integers(0, 10**9), max_size=200))
def test_a_percentile_is_a_value_that_so_many_reach(values: list[int]) -> None:
    found = compute_spread(values)
    assert found.size == len(values)
    if not values:
        assert (found.median, found.high) == (None, None)
        return
    assert found.median is not None
    assert found.high is not None
    assert sum(value <= found.median for value in values) * 2 >= len(values)
    assert sum(value <= found.high for value in values) * 100 >= len(values) * 95
    assert {found.median, found.high} <= set(values)
