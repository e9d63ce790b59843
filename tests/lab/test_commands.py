"""`simulate_record` and `bench` as commands: what they print, what they write, how they end."""

from __future__ import annotations

import hashlib
import json
import os
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from conversations.budgets.prices import load_price_list
from conversations.context.policy.policy import PRESETS
from conversations.lab.call_times import schedule_calls
from conversations.lab.records import read_record
from conversations.lab.report import simulate_record
from conversations.reductions.trial_subject import RECALL
from tests.lab.samples import PAGE, answer, line, reading, user, world
from tests.support.forked_commands import run_forked
from tests.support.recorded_conversations import recorded_files

pytestmark = pytest.mark.django_db


def run(*words: str) -> tuple[int, str, str]:
    """Run a command; give its exit code and what it printed."""
    out, err = StringIO(), StringIO()
    try:
        call_command(*words, stdout=out, stderr=err)
    except SystemExit as end:
        return int(end.code or 0), out.getvalue(), err.getvalue()
    except CommandError as error:
        return error.returncode, out.getvalue(), err.getvalue() + str(error)
    return 0, out.getvalue(), err.getvalue()


@pytest.fixture
def talk(tmp_path: Path) -> str:
    path = tmp_path / "talk.jsonl"
    path.write_text(line(reading(20)) + "\n" + line(reading(2, prompts=2), id="short"))
    return str(path)


def test_a_database_of_another_version_is_named_and_not_a_traceback(talk: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute('ALTER TABLE conversations_apimodel RENAME COLUMN "window" TO another')
    code, _, err = run("simulate", talk)
    assert code == 2
    assert err.startswith("the catalogue cannot be read, is the database migrated? ")


def test_policies_stand_side_by_side(talk: str) -> None:
    code, out, err = run("simulate", talk, "--policy", "tool-budget", "--policy", "off")
    assert (code, err) == (0, "")
    head = next(line for line in out.splitlines() if line.split() == ["tool-budget", "off"])
    rows = out[out.index(head) :].splitlines()
    assert {"calls", "cost", "cost without caching", "rule violations"} <= {
        row[:23].strip() for row in rows
    }
    assert [row.split()[-2:] for row in rows if row.startswith("calls")] == [["27", "27"]]
    assert out.count("short") == 2


def test_json_has_every_conversation_and_the_totals(talk: str) -> None:
    code, out, _ = run("simulate", talk, "--policy", "tool-budget", "--json")
    assert code == 0
    found = json.loads(out)
    assert [row["id"] for row in found["conversations"]] == ["talk", "short"]
    total = found["totals"][0]
    assert total["calls"] == sum(row["calls"] for row in found["conversations"])
    assert total["cost_micros"] == sum(row["cost_micros"] for row in found["conversations"])
    assert total["transformations"]["compaction"] > 0
    assert found["model"] == "claude-sonnet-5-5"


def test_windows_stand_side_by_side_and_markdown_has_a_row_for_each(
    talk: str, tmp_path: Path
) -> None:
    words = ("simulate", talk, "--policy", "tool-budget", "--window", "32000", "--window", "200000")
    code, out, _ = run(*words)
    assert code == 0
    assert ["window", "32,000", "200,000"] in [line.split() for line in out.splitlines()]
    code, out, _ = run(*words, "--markdown", "--dump-requests", f"{tmp_path}/out")
    assert code == 0
    folders = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert folders == ["tool-budget_200000", "tool-budget_32000"]
    rows = [line.split(" | ")[:2] for line in out.splitlines()[2:]]
    assert rows == [["| 32,000", "`tool-budget`"], ["| 200,000", "`tool-budget`"]]


@pytest.mark.only_database("sqlite", "a server has its database before there is a site")
def test_a_folder_is_replayed_without_a_database_of_the_site(talk: str, tmp_path: Path) -> None:
    words = ("simulate", str(tmp_path), "--policy", "off", "--tokenizer", "words", "--json")
    own = {"AGENTWEB_DATA_DIR": f"{tmp_path}/data", "DJANGO_SETTINGS_MODULE": "agentweb.settings"}
    ended, said = run_forked(os.environ | own, *words)
    assert ended == 0, said
    _, out, _ = run("simulate", talk, *words[2:])
    fresh, here = json.loads(said)["totals"][0], json.loads(out)["totals"][0]
    assert fresh["conversations"] == 2
    assert fresh["cost_micros"] == here["cost_micros"]
    assert not list(Path(own["AGENTWEB_DATA_DIR"]).glob("*.sqlite3"))


def test_numbers_can_be_set(talk: str) -> None:
    for budget, expected in (("9000", True), ("0", False)):
        words = ("--set", f"input_token_budget={budget}", "--set", "verbatim_tools=recall,read")
        code, out, _ = run("simulate", talk, "--policy", "tool-budget", "--json", *words)
        assert code == 0
        assert ("compaction" in json.loads(out)["totals"][0]["transformations"]) is expected


def test_the_api_counts_by_words_unless_it_is_to_count_like_the_engine(talk: str) -> None:
    found = {}
    for tokenizer in ("words", "estimate"):
        _, out, _ = run("simulate", talk, "--policy", "off", "--tokenizer", tokenizer, "--json")
        found[tokenizer] = json.loads(out)["totals"][0]["input_tokens"]
    assert found["words"] != found["estimate"]
    assert 0.5 < found["words"] / found["estimate"] < 2


def test_requests_are_written_as_they_would_be_sent(talk: str, tmp_path: Path) -> None:
    code, _, _ = run("simulate", talk, "--policy", "off", "--dump-requests", f"{tmp_path}/out")
    assert code == 0
    written = sorted((tmp_path / "out" / "off" / "talk").iterdir())
    one = read_record(json.loads(line(reading(20))))
    assert [int(path.stem) for path in written] == list(schedule_calls(one))
    last = json.loads(written[-1].read_text(encoding="utf-8"))
    assert last["messages"] == reading(20)[:-1]
    assert last["model"] == "claude-sonnet-5-5"


def test_the_same_run_twice_gives_the_same_numbers(talk: str, tmp_path: Path) -> None:
    digests = []
    for name in ("one", "two"):
        run("simulate", talk, "--policy", "rebuild", "--dump-requests", f"{tmp_path}/{name}")
        files = sorted((tmp_path / name).rglob("*.json"))
        digests.append([hashlib.sha256(path.read_bytes()).hexdigest() for path in files])
    assert digests[0] == digests[1] != []


def test_the_emulator_can_write_the_summaries(talk: str) -> None:
    words = ("--set", "compaction_threshold_tokens=20000", "--summarizer", "emulator", "--json")
    code, out, _ = run("simulate", talk, "--policy", "rebuild", *words)
    assert code == 0
    assert json.loads(out)["totals"][0]["transformations"]["summary"] >= 1


BAD = {
    "there is no policy 'best'": ("--policy", "best"),
    "is no number of the context policy": ("--set", "colour=3"),
    "--set takes KEY=VALUE": ("--set", "colour"),
    "must be a whole number": ("--set", "input_token_budget=many"),
    "the model 'gpt' is not in the catalogue": ("--model", "gpt"),
    "--window must be": ("--window", "0"),
    "--limit must be": ("--limit", "0"),
    "--scale must be": ("--scale", "1"),
    "cannot be read": ("/nowhere.jsonl",),
}


@pytest.mark.parametrize("words", BAD)
def test_bad_usage_ends_with_2_and_says_why(talk: str, words: str) -> None:
    code, out, err = run("simulate", talk, *BAD[words])
    assert (code, out) == (2, "")
    assert words in err


def test_a_bad_line_is_named_and_nothing_is_replayed(talk: str) -> None:
    with Path(talk).open("a") as file:
        file.write("\n{}\n")
    code, out, err = run("simulate", talk, "--policy", "off")
    assert (code, out) == (2, "")
    assert f"{talk}:3: " in err


def test_a_request_over_the_window_ends_with_1(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    path.write_text(line([user(PAGE * 6), answer("Long.")]))
    # Billed at four times what the engine expects before it has seen a bill.
    words = ("--policy", "off", "--window", "40000", "--scale", "400")
    code, out, _ = run("simulate", str(path), *words)
    assert code == 1
    assert next(row for row in out.splitlines() if "overruns" in row).split()[-1] == "1"


@pytest.mark.parametrize("policy", PRESETS)
def test_recorded_conversations_are_replayed_without_a_violation(policy: str) -> None:
    files = [path for path in recorded_files("dev") if "customer" in path.name]
    if not files:
        pytest.skip("the recorded conversations are not at hand")
    code, out, err = run("simulate", str(files[0]), "--policy", policy, "--limit", "3", "--json")
    assert (code, err) == (0, "")
    total = json.loads(out)["totals"][0]
    assert total["facts"]["recoverable"] == total["facts"]["needed"]


def test_the_command_says_what_the_lab_says(talk: str) -> None:
    words = ("--policy", "off", "--limit", "1", "--tokenizer", "words", "--json")
    _, out, _ = run("simulate", talk, *words)
    told = json.loads(out)["totals"][0]
    one = read_record(json.loads(line(reading(20))))
    prices = load_price_list("claude-sonnet-5-5", timezone.now())
    off = world("off", window=1_000_000, recall_tools=RECALL, prices=prices)
    found = simulate_record(one, off)
    assert told["cost_micros"] == found.total_cost
    assert told["peak_input_tokens"] == found.peak


def test_bench_measures_the_engine_beside_the_floors() -> None:
    code, out, _ = run("bench", "context", "--sizes", "20,60", "--runs", "1", "--json")
    assert code == 0
    found: dict[str, Any] = json.loads(out)
    assert [row["messages"] for row in found["rows"]] == [20, 60]
    for row in found["rows"]:
        assert row["calm"]["decide"] > 0
        assert row["session"]["calls"] == row["messages"] // 2
        assert {"byte_trim", "result_scan"} <= set(row["floors"])
        assert set(row["ratios"]) == set(row["amortised"]) == set(row["floors"])
    assert "calm_decide" in found["growth"]


def test_bench_prints_for_people() -> None:
    code, out, _ = run("bench", "context", "--sizes", "20,40", "--runs", "1")
    assert code == 0
    assert "20 messages: one call" in out
    assert "growth order" in out


@pytest.mark.parametrize("words", [("--policy", "best"), ("--runs", "0"), ("--window", "1")])
def test_bench_refuses_bad_usage_with_2(words: tuple[str, ...]) -> None:
    assert run("bench", "context", *words)[0] == 2
