"""What must not grow: an answer's cost per character, a page's statements with the conversation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from conversations.bench import pages, stream, words
from conversations.bench.pages import Page, conversation_pages, lengthy, list_pages, reader
from conversations.queries.meters import meter

PROJECT = Path(__file__).resolve().parents[2]


@pytest.mark.asyncio
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("shape", [*words.SHAPES, "thinking"])
async def test_a_streamed_answer_costs_the_same_per_character_at_any_length(shape: str) -> None:
    short = (await stream.measure(shape, 5_000, 64, 2)).data
    long = (await stream.measure(shape, 40_000, 64, 2)).data
    assert long["frames"] <= short["frames"] * 8.2
    for cost in ("bytes_per_character", "parsed_per_character", "bytes_ratio"):
        assert long[cost] <= short[cost] * 1.3
    assert long["bytes_ratio"] < 12
    assert long["parsed_per_character"] < 16


@pytest.mark.django_db
def test_pages_of_a_long_conversation_take_the_statements_of_a_short_one() -> None:
    """The page is full in both; what lies behind it must not be asked about one by one."""
    user, client = reader("ada")
    short, long = (pages._pages(client, lengthy(user, turns), 1) for turns in (25, 2_000))
    for less, more in zip(short, long, strict=True):
        assert (more.name, more.queries) == (less.name, less.queries)
        if more.name != "state of a turn":
            assert more.size <= less.size * 1.1 + 200


@pytest.mark.django_db
def test_a_long_conversation_is_measured_at_once_where_the_planner_knows_of_no_row() -> None:
    user, _ = reader("ada")
    with transaction.atomic():
        lengthy(user, 500)
        transaction.set_rollback(True)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    long = lengthy(user, 2_000)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # A walk through all pairs of rows takes many times as long.
            cursor.execute("SET LOCAL statement_timeout = '4s'")
    assert meter(long).tokens > 100_000


@pytest.mark.django_db
def test_lists_of_many_conversations_take_the_statements_of_one() -> None:
    for page in list_pages(150, 1):
        assert page.queries < 15
    few, many = ({page.name: page for page in list_pages(count, 1)} for count in (45, 150))
    for name, page in many.items():
        assert page.queries == few[name].queries
        assert page.size <= few[name].size * 1.1 + 200


@pytest.mark.django_db
def test_a_page_is_measured_beside_the_shortest() -> None:
    found = {page.name: page for page in conversation_pages(3, 1, 1)}
    assert {"open", "earlier", "around a message", "snapshot", "send"} <= found.keys()
    for page in found.values():
        assert page.milliseconds > 0
        assert page.processor > 0
        assert page.floor > 0
    assert found["open"].size > 5_000
    assert Page("x", 20.0, 10.0, 1, 1, floor=5.0).ratio == 2


def _bench(tmp_path: Path, *words: str) -> str:
    # In a process: it makes a database of its own, which is not for a test's connection.
    own = os.environ | {"AGENTWEB_DATA_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": ""}
    own.pop("DJANGO_SETTINGS_MODULE")
    own.pop("DATABASE_URL", None)
    command = [sys.executable, "manage.py", "bench", *words]
    done = subprocess.run(command, cwd=PROJECT, env=own, capture_output=True, text=True, check=True)
    return done.stdout


def test_bench_stream_prints_both_sides(tmp_path: Path) -> None:
    found = json.loads(_bench(tmp_path, "stream", "--lengths", "600", "--tabs", "2", "--json"))
    assert {row["shape"] for row in found["rows"]} == {*words.SHAPES, "thinking"}
    for row in found["rows"]:
        assert row["processor_ratio"] > 0
        assert row["bytes_ratio"] > 1
    assert not (tmp_path / "agentweb.sqlite3").exists()


def test_bench_pages_prints_for_people(tmp_path: Path) -> None:
    said = _bench(tmp_path, "pages", "--entries", "40", "--conversations", "3", "--runs", "1")
    for name in ("talk   open", "agent  open", "lists  search", "statements"):
        assert name in said


@pytest.mark.parametrize(
    "given",
    [("stream", "--step", "0"), ("stream", "--tabs", "0"), ("pages", "--entries", "0")],
)
def test_bench_refuses_bad_usage_with_2(given: tuple[str, ...]) -> None:
    with pytest.raises(CommandError) as caught:
        call_command("bench", *given, stdout=StringIO())
    assert caught.value.returncode == 2
