"""A made site has a true record, and a move is killed when it was drawn that it should be."""

from __future__ import annotations

import random
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import models

from agentweb.bench import made_site
from agentweb.bench.big_move import render
from agentweb.bench.killed_move import Moment, Moved, measure_command, move_site, plan_kills
from agentweb.bench.table_sums import list_differences
from agentweb.emulator import server
from conversations.audit.verify import Tally, verify_everything
from conversations.library.search import search_messages
from conversations.models import BudgetWindow, ClosedDay, Conversation, Transformation

#: Says what a move says, goes on behind its last batch, and ends only in its last run.
FAKE = """
import pathlib, sys, time
place, runs, code = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])

def note(number, at):
    new = place.with_suffix(".new")
    new.write_text(f"{number} {at}")
    new.rename(place)

number, at = map(int, place.read_text().split()) if place.exists() else (0, 0)
note(number + 1, at)
print("Reading the source for its digests.\\nmessage: 9 rows read\\nCopying.", flush=True)
for at in range(at, 9):
    print(f"message: {at} of 9 rows copied", flush=True)
    note(number + 1, at + 1)
if number + 1 < runs:
    time.sleep(600)
print("Putting foreign keys back.\\nReading the copy for its digests.", flush=True)
print("9 rows are the same in both databases: sha256:1", flush=True)
sys.exit(code)
"""


@pytest.mark.django_db(transaction=True)
@pytest.mark.only_database("sqlite", "where large sites are made")
def test_a_made_site_verifies_and_is_found_by_its_words(settings: Any, tmp_path: Path) -> None:
    for name, value in made_site.SETTINGS.items():
        setattr(settings, name, int(value) if value.isdigit() else value)
    settings.AGENTWEB_TITLE_MODEL = "off"
    settings.AGENTWEB_ANCHOR_FILE = str(tmp_path / "anchors.jsonl")
    with server.start(pace=0) as emulator:
        settings.ANTHROPIC_BASE_URL = emulator.url
        found = made_site.make_site(7, 3)
    tally = Tally()
    assert list(verify_everything(tally)) == []
    assert (tally.conversations, tally.verified) == (7, found["apicall"])
    assert Transformation.objects.filter(kind="compaction", outcome="applied").count() > 7
    assert BudgetWindow.objects.filter(spent__gt=0).count() > 2
    assert ClosedDay.objects.filter(is_current=True).exists()
    assert not Conversation.objects.exclude(anchored=models.F("links")).exists()
    copy = Conversation.objects.filter(title__startswith="Chat").first()
    assert copy is not None
    hits = search_messages(copy.owner, "naïve").rows
    assert str(copy.public_id) in {row.conversation for row in hits}


def _run(folder: Path, moments: list[Moment], code: int = 0) -> Moved:
    script = folder / "fake.py"
    script.write_text(FAKE, encoding="utf-8")
    command = [str(script), str(folder / "place"), str(len(moments) + 1), str(code)]
    return move_site(command, folder, {}, moments, lambda _: None)


def test_a_move_is_killed_at_every_moment_and_goes_on(tmp_path: Path) -> None:
    moved = _run(tmp_path, [Moment("copying", 3), Moment("reading", 2)])
    assert moved.kills == ["copying", "reading"]
    assert "message: 0 of" not in moved.said
    assert "rows are the same in both databases" in moved.said


def test_a_move_that_fails_is_named_with_what_it_said(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"the move failed:\n(.*\n)*Putting foreign keys back"):
        _run(tmp_path, [], code=3)


def test_moments_are_drawn_for_all_parts_and_again_by_the_same_seed() -> None:
    drawn = plan_kills(200, 1_000, random.Random(5))
    assert drawn == plan_kills(200, 1_000, random.Random(5))
    assert len(drawn) == 200
    assert {one.part for one in drawn} == {"reading", "copying", "finishing", "comparing"}
    assert sum(one.lines for one in drawn if one.part == "copying") <= 1_200
    ends = [one.part for one in drawn if one.part in {"finishing", "comparing"}]
    assert ends == sorted(ends, reverse=True)


def test_what_a_command_says_and_uses_is_measured(tmp_path: Path) -> None:
    script = tmp_path / "words.py"
    script.write_text("print('some words'); raise SystemExit(4)", encoding="utf-8")
    found = measure_command([str(script)], tmp_path, {}, "words")
    assert (found["code"], found["said"]) == (4, "some words\n")


def test_tables_that_differ_or_are_missing_are_named() -> None:
    assert list_differences({"a": (1, 2), "b": (1, 1)}, {"a": (1, 2), "c": (0, 0)}) == ["b", "c"]


def test_the_figures_are_written() -> None:
    row = {"kills": ["copying", "reading"], "processor": 90, "last": 30, "peak": 150}
    found = {
        "machine": {"date": "2026-11-26 12:00"},
        "made": {
            "conversation": 5_000, "apicall": 200_000, "transformation": 9, "rows": 1_900_000,
            "bytes": 1_200_000_000,
        },
        "source": {"processor": 400, "peak": 180},
        "there": row | {"verified_peak": 180},
        "back": row | {"verified_peak": 181},
        "pages": 800,
        "differences": [],
    }  # fmt: skip
    text = render(found)
    for words in (
        "1.9 million rows",
        "0 differences",
        "Killed 4 times: 2 while copying",
        "| 181 |",
    ):
        assert words in text


def test_a_site_of_one_conversation_is_refused() -> None:
    with pytest.raises(CommandError, match="--conversations is at least 2"):
        call_command("bench", "move", "--conversations", "1", stdout=StringIO())
