"""What must hold on recorded conversations, where they are available."""

from __future__ import annotations

import os
from io import StringIO
from itertools import chain, takewhile
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command

from conversations.context.policy.policy import PRESETS
from conversations.context.view import wire
from conversations.lab import report_table
from conversations.lab.accuracy import measure_errors, summarise_errors
from conversations.lab.records import Record, read_records
from conversations.lab.replayer import Replayer
from conversations.lab.report import Report, simulate_record
from tests.lab.samples import world
from tests.support.recorded_conversations import recorded_files

#: Classic presets, which `adaptive` may not cost more than.
CLASSIC = ("tool-budget", "rebuild", "gated-trim", "structured", "classic")
#: Those of them that cost the least, by window; `manage.py test --thorough` replays all.
CHEAPEST = {32_000: "rebuild", 200_000: "structured"}
IS_THOROUGH = bool(os.environ.get("AGENTWEB_TEST_THOROUGH"))


def records(part: str, name: str) -> list[Record]:
    """Give the records of the files whose name holds a text; skips where there are none."""
    files = [path for path in recorded_files(part) if name in path.name]
    if not files:
        pytest.skip("the recorded conversations are not at hand")
    return [one for path in files for one in read_records(path) if isinstance(one, Record)]


def longest_turn(one: Record) -> int:
    """Give the most rounds of tool calls that one turn has."""
    turns = "".join(message.kind[0] for message in one.messages).split("p")
    return max(turn.count("r") for turn in turns)


def readme(folder: str = "conversations/lab") -> str:
    return Path(settings.BASE_DIR, folder, "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PRESETS)
def test_a_short_conversation_is_sent_as_it_is_stored(name: str) -> None:
    policy = PRESETS[name]
    for one in records("dev", "customer_service")[:6]:
        # The working memory of a turn has a budget of its own, in rounds.
        if policy.round_summary_every and longest_turn(one) >= policy.round_summary_every:
            continue
        for step in Replayer(one, world(name)).steps():
            stored = wire.join(message.text for message in one.messages[: step.at])
            assert step.messages == stored
            assert step.keeps_prefix
            assert not step.changes


def test_the_gauge_is_as_near_to_recorded_counts_as_promised() -> None:
    found = summarise_errors(chain.from_iterable(map(measure_errors, records("dev", "coding"))))
    assert found is not None
    assert found.calls > 100
    assert found.reported_median <= 10
    assert found.reported_p95 <= 60
    assert found.unreported_median <= 100


@pytest.mark.parametrize("window", CHEAPEST)
def test_adaptive_costs_no_more_than_the_classics_and_names_what_left(window: int) -> None:
    found: dict[str, Report] = {}
    classic = CLASSIC if IS_THOROUGH else (CHEAPEST[window],)
    for name in (*classic, "adaptive"):
        found[name] = Report(name, window)
        for one in records("long", "bccb77bb88fa1"):
            found[name].merge(simulate_record(one, world(name, window=window)))
    costs = {name: found[name].total_cost for name in classic if not found[name].ended}
    assert min(costs, key=costs.__getitem__) == CHEAPEST[window]
    adaptive = found["adaptive"]
    assert adaptive.total_cost * 100 <= costs[CHEAPEST[window]] * 105
    assert adaptive.facts.named * 100 >= adaptive.facts.needed * 95
    for report in found.values():
        assert report.is_clean
        assert report.facts.recoverable == report.facts.needed


def test_the_readme_has_the_table_of_the_command() -> None:
    header = report_table.render_markdown([]).splitlines()
    lines = readme().splitlines()
    assert header[0] in lines
    start = lines.index(header[0])
    assert lines[start + 1] == header[1]
    table = takewhile(lambda line: line.startswith("|"), lines[start + 2 :])
    rows = [line.split(" | ")[:2] for line in table]
    windows = {window for window, _ in rows}
    # Replaying every preset takes minutes for each window, so no others are required; but where one
    # is shown, all presets are, each once.
    assert "| 200,000" in windows
    assert sorted(rows) == sorted([window, f"`{name}`"] for window in windows for name in PRESETS)


def test_the_row_of_the_front_page_is_one_of_the_table() -> None:
    header = report_table.render_markdown([]).splitlines()
    front = readme("").splitlines()
    start = front.index(header[0])
    assert front[start + 1] == header[1]
    assert front[start + 2].split(" | ")[1] == "`adaptive`"
    assert front[start + 2] in readme().splitlines()


@pytest.mark.django_db
def test_the_small_table_of_the_readme_is_what_the_command_prints() -> None:
    files = [str(path) for path in recorded_files("dev") if "multi_turn" in path.name]
    if not files:
        pytest.skip("the recorded conversations are not at hand")
    out = StringIO()
    words = ("--policy", "rebuild", "--policy", "adaptive", "--window", "32000", "--markdown")
    words += ("--tokenizer", "words")
    call_command("simulate", *files, *words, stdout=out)
    assert out.getvalue().strip() in readme()
