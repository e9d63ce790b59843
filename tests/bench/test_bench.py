"""What must not grow: an answer's cost per character, a page's statements with the conversation."""

from __future__ import annotations

import contextlib
import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from agentweb.bench import made_markdown, page_times, rendering_cost
from agentweb.bench.page_times import (
    Page,
    import_long_conversation,
    make_reader,
    measure_conversation_pages,
    measure_list_pages,
)
from agentweb.bench.request_times import SHORT, measure_requests
from conversations.log.tree import filter_path_turns
from conversations.operations import scratch_database
from conversations.transcript.meter import read_meter

#: Statements that read and save a checkpoint of the view.
CHECKPOINT = 9


@pytest.mark.asyncio
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("shape", [*made_markdown.SHAPES, "thinking"])
async def test_a_streamed_answer_costs_the_same_per_character_at_any_length(shape: str) -> None:
    short = (await rendering_cost.measure(shape, 5_000, 64, 1)).data
    long = (await rendering_cost.measure(shape, 40_000, 64, 1)).data
    assert long["frames"] <= short["frames"] * 8.2
    for cost in ("bytes_per_character", "parsed_per_character", "bytes_ratio"):
        assert long[cost] <= short[cost] * 1.3
    assert long["bytes_ratio"] < 12
    assert long["parsed_per_character"] < 16


@pytest.mark.django_db
def test_pages_of_a_long_conversation_take_the_statements_of_a_short_one() -> None:
    """The page is full in both; what lies behind it must not be asked about one by one."""
    user, client = make_reader("ada")
    short, long = (
        page_times._pages(client, import_long_conversation(user, turns), 1) for turns in (60, 600)
    )
    for less, more in zip(short, long, strict=True):
        assert more.name == less.name
        # What a conversation does not contain is not asked about, and a forecast is made once.
        assert more.queries <= less.queries
        if more.name != "state of a turn":
            assert more.size <= less.size * 1.1 + 200


@pytest.mark.django_db
def test_a_long_conversation_is_measured_at_once_where_the_planner_knows_of_no_row() -> None:
    user, _ = make_reader("ada")
    with transaction.atomic():
        import_long_conversation(user, 200)
        transaction.set_rollback(True)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    long = import_long_conversation(user, 2_000)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # A walk through all pairs of rows takes many times as long.
            cursor.execute("SET LOCAL statement_timeout = '4s'")
    assert read_meter(long).tokens > 100_000
    assert filter_path_turns(long).count() == 2_000


@pytest.mark.django_db
def test_lists_of_many_conversations_take_the_statements_of_one() -> None:
    few, many = ({page.name: page for page in measure_list_pages(count, 1)} for count in (45, 120))
    for name, page in many.items():
        assert page.queries == few[name].queries < 17
        assert page.size <= few[name].size * 1.1 + 200


@pytest.mark.django_db
def test_a_page_is_measured_beside_the_shortest() -> None:
    found = {page.name: page for page in measure_conversation_pages(3, 1, 1)}
    assert {"open", "earlier", "around a message", "snapshot", "send"} <= found.keys()
    for page in found.values():
        assert page.milliseconds > 0
        assert page.processor > 0
        assert page.floor > 0
    assert found["open"].size > 5_000
    assert Page("x", 20.0, 10.0, 1, 1, floor=5.0).ratio == 2


@pytest.mark.django_db
def test_a_request_of_a_long_conversation_takes_the_statements_and_bytes_of_a_short_one() -> None:
    short, long = (measure_requests(entries, 1)[0] for entries in (SHORT, 1_200))
    assert long.queries <= short.queries + CHECKPOINT
    assert long.size <= short.size * 1.1
    assert long.floor > 0


@pytest.fixture
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure in the test's own database; a command makes one for itself."""
    monkeypatch.setattr(scratch_database, "use_empty_database", contextlib.nullcontext)


@pytest.mark.usefixtures("_here")
@pytest.mark.django_db(transaction=True)
def test_bench_render_prints_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made_markdown, "SHAPES", {"markdown": made_markdown.SHAPES["markdown"]})
    out = StringIO()
    call_command("bench", "render", "--lengths", "600", "--tabs", "2", "--json", stdout=out)
    found = json.loads(out.getvalue())
    assert {row["shape"] for row in found["rows"]} == {"markdown", "thinking"}
    for row in found["rows"]:
        assert row["processor_ratio"] > 0
        assert row["bytes_ratio"] > 1


@pytest.mark.usefixtures("_here")
@pytest.mark.django_db
def test_bench_pages_prints_for_people() -> None:
    out = StringIO()
    given = ("--entries", "40", "--conversations", "3", "--runs", "1")
    call_command("bench", "pages", *given, stdout=out)
    for name in ("talk   open", "agent  open", "turn   prompt", "lists  search", "statements"):
        assert name in out.getvalue()


@pytest.mark.parametrize(
    "given",
    [
        ("render", "--step", "0"),
        ("render", "--tabs", "0"),
        ("pages", "--entries", "0"),
        ("compare", "nothing.json"),
    ],
)
def test_bench_refuses_bad_usage_with_2(given: tuple[str, ...]) -> None:
    with pytest.raises(CommandError) as caught:
        call_command("bench", *given, stdout=StringIO())
    assert caught.value.returncode == 2


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("stream", "--conversations", "0"), "whole numbers with commas"),
        (("stream", "--mode", "cloud"), "invalid choice: 'cloud'"),
        (("load", "--only", "everything"), "everything is no subject"),
    ],
)
def test_bench_says_what_it_does_not_know(given: tuple[str, ...], why: str) -> None:
    with pytest.raises(CommandError, match=why):
        call_command("bench", *given, stdout=StringIO())
