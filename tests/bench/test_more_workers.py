"""Bursts with several workers: what their parts took is told apart, and each runs on its core."""

from __future__ import annotations

import os
import subprocess
import sys
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from agentweb.bench import more_workers

SPENT = {"postgres": 0.6, "redis": 0.1, "web": 1.0, "worker 1": 1.2, "worker 2": 0.8}


def test_a_burst_is_described_by_what_its_parts_took() -> None:
    found = {"first": {"p50": 300.0, "p95": 900.0}, "refused": 1}
    assert more_workers.describe_burst(2, 100, SPENT, found) == {
        "workers": 2,
        "asks": 100,
        "worker_milliseconds": 20.0,
        "milliseconds": 37.0,
        "busiest_percent": 60,
        "first_p95": 900.0,
        "model_p95": 190,
        "refused": 1,
    }


@pytest.mark.parametrize(
    ("seconds", "wait"), [(0.0, 0.0), (1.0, 0.0), (2.0, 950.0), (4.0, 2_850.0)]
)
def test_people_wait_for_what_takes_longer_than_the_second_they_come_in(
    seconds: float, wait: float
) -> None:
    assert more_workers.predict_wait(seconds) == wait


def test_the_model_looks_at_the_process_that_has_most_to_do() -> None:
    found = {"first": {}, "refused": 0}
    alone = {"postgres": 2.0, "web": 2.0, "worker 1": 4.0}
    three = {"postgres": 2.0, "web": 2.0, "worker 1": 1.4, "worker 2": 1.3, "worker 3": 1.3}
    assert more_workers.describe_burst(1, 200, alone, found)["model_p95"] == 2_850
    # Of two seconds of the web process: it is one, however many workers there are.
    assert more_workers.describe_burst(3, 200, three, found)["model_p95"] == 950


def test_what_is_started_on_a_core_stays_on_it_and_this_process_does_not() -> None:
    before = os.sched_getaffinity(0)
    core = max(before)
    with more_workers.running_on(core):
        program = "import os; print(*os.sched_getaffinity(0))"
        said = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert said.stdout.split() == [b"%d" % core]
    assert os.sched_getaffinity(0) == before


def test_turns_of_several_workers_are_counted() -> None:
    seen: list[more_workers.Row] = []
    rows = more_workers.measure([2], seen.append, asks=6)
    assert rows == seen
    [row] = rows
    assert (row["workers"], row["asks"], row["refused"]) == (2, 6, 0)
    assert row["milliseconds"] > row["worker_milliseconds"] > 0 < row["first_p95"]
    assert 50 <= row["busiest_percent"] <= 100
    assert "2 workers, 6 ask within a second" in more_workers.format_line(row)


def test_counts_of_workers_are_whole_numbers() -> None:
    with pytest.raises(CommandError, match="whole numbers with commas"):
        call_command("bench", "workers", "--counts", "0", stdout=StringIO())
