"""The figures that the README quotes are those of the newest kept run, and they keep the floors."""

from __future__ import annotations

import asyncio
import copy
import re
import time
from pathlib import Path
from typing import Any

import pytest

from agentweb.bench import reader_process, readme_figures, streaming
from agentweb.bench.baseline_relay import make_application
from agentweb.bench.http_client import open_client
from agentweb.bench.readers import Reader, compute_quantiles
from agentweb.emulator import server
from agentweb.emulator.streaming.open_loop import _stamp
from agentweb.marked_text import read_marked


def test_the_readme_quotes_the_newest_kept_run_and_nothing_else() -> None:
    kept = readme_figures.list_runs()
    quoted = read_marked(readme_figures.README, readme_figures.MARKS)
    assert quoted == (
        readme_figures.render_figures(readme_figures.read_run(kept[-1])).strip() if kept else ""
    )


def test_the_newest_kept_run_keeps_the_floors() -> None:
    """Where no run is kept the README claims nothing; `manage.py bench report` keeps one."""
    missed = [
        f"{floor.name}: {floor.value(data):g}, the limit is {floor.limit:g}"
        for data in map(readme_figures.read_run, readme_figures.list_runs()[-1:])
        for floor in readme_figures.FLOORS
        if not floor.holds(data)
    ]
    assert missed == []


def test_a_kept_run_names_no_machine() -> None:
    for path in readme_figures.list_runs():
        assert not re.search(r"/home|/root|/tmp|/work|http|localhost|127\.0\.0", path.read_text())


def run_of(p95: float = 100.0, spent: float = 0.5) -> dict[str, Any]:
    """Make up the data of a run."""
    latency = {"p50": 50.0, "p95": p95, "p99": 200.0, "max": 300.0}
    row = {
        "latency": latency, "first": {"p50": 20.0}, "per_second": 2_500.0, "parts": {"web": spent},
        "processor": spent, "per_socket": 20.0, "late": 0, "missing": 0, "unstored": 0,
        "megabytes": {"web": 100.0},
    }  # fmt: skip
    sides = {"relay": 0.4, "embedded": spent, "scaled out": spent}
    rows = [
        row | {"side": side, "conversations": 50, "processor": each} for side, each in sides.items()
    ]
    modes = ("embedded", "scaled out")
    load = {
        "idle": [{"mode": "embedded", "sockets": 1_000, "kilobytes": 30, "processor_percent": 1,
                  "closed": 0}],
        "ack": [{"mode": mode, "people": 20, "rate": 4} | latency for mode in modes],
        "again": [{"mode": mode, "clients": 1_000, "seconds_max": 9.0, "away": 0,
                   "unequal": 0} for mode in modes],
        "frames": [{"mode": "embedded", "sockets": 160, "frames_a_second": 2_000, "late": 0,
                    "missing": 0, "unstored": 0, "processor_percent": 90} | latency],
        "neighbour": [{"mode": "embedded", "latency_ratio": 1.1, "ack_ratio": 1.4}],
    }  # fmt: skip
    machine = {"cores": 2, "load": 0.1, "python": "3.11.7", "date": "2026-11-22 06:10"}
    return {"machine": machine, "stream": streaming.add_ratios(rows), "load": load}


def test_a_run_is_kept_and_quoted_between_the_marks(tmp_path: Path) -> None:
    path = readme_figures.write_run(run_of(), tmp_path / "results")
    assert readme_figures.list_runs(tmp_path / "results") == [path]
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- figures -->\nold\n<!-- /figures -->\nafter\n")
    assert readme_figures.quote_run(readme_figures.read_run(path), readme)
    quoted = read_marked(readme, readme_figures.MARKS)
    assert quoted == readme_figures.render_figures(run_of())
    assert "| embedded | 50 | 50 / 100 / 200 | 20 | 0.50 | 1.2 | 20 |" in quoted
    assert readme.read_text().startswith("before\n")
    assert readme.read_text().endswith("after\n")
    readme.write_text("no marks")
    assert not readme_figures.quote_run(run_of(), readme)


def test_a_floor_that_is_missed_and_a_figure_that_is_a_fifth_worse_are_named() -> None:
    before, slow = run_of(), run_of(p95=310.0)
    assert all(floor.holds(before) for floor in readme_figures.FLOORS)
    assert sum(not floor.holds(slow) for floor in readme_figures.FLOORS) == 4
    assert readme_figures.find_losses(before, run_of(p95=119.0)) == []
    named = readme_figures.find_losses(before, run_of(spent=0.7))
    assert named == [
        f"processor time of the relay's, 50 conversations, {mode}: 1.25 before, 1.75 now"
        for mode in ("embedded", "scaled out")
    ]
    for kind, name in (("stream", "missing"), ("stream", "unstored"), ("load", "missing")):
        lost = copy.deepcopy(before)
        rows = lost["stream"] if kind == "stream" else lost["load"]["frames"]
        rows[-1] |= {"late": 5, name: 1}
        assert sum(not floor.holds(lost) for floor in readme_figures.FLOORS) == 1
    for name in ("away", "unequal"):
        strayed = copy.deepcopy(before)
        strayed["load"]["again"][-1][name] = 1
        assert sum(not floor.holds(strayed) for floor in readme_figures.FLOORS) == 1
    for kind in ("latency", "ack"):
        pushed = copy.deepcopy(before)
        pushed["load"]["neighbour"][0][f"{kind}_ratio"] = 2.1
        assert sum(not floor.holds(pushed) for floor in readme_figures.FLOORS) == 1
    fewer = copy.deepcopy(before)
    fewer["load"]["idle"][0]["sockets"] = 700
    assert readme_figures.find_losses(before, fewer) == [
        "idle sockets of one web process: 1000 before, 700 now"
    ]


def test_a_delta_counts_once_however_often_it_is_shown() -> None:
    now = time.time_ns() // 1_000
    reader = Reader(4)
    stamps = [f"t{_stamp(now - 4_000 + at).decode()}" for at in range(4)]
    reader.take("<p>a snapshot of nothing</p>")
    again = Reader(1)
    again.take(f'<p>{stamps[0]}</p><template class="source">{stamps[0]}</template>')
    assert again.seen == 1
    reader.take(f"<p>{stamps[0]} {stamps[1]}</p>")
    reader.take(f"<p>{stamps[0]} {stamps[1]}</p>\n<p>{' '.join(stamps)}</p>\n<p>{stamps[3]}</p>")
    assert reader.seen == len(reader.latencies) == 4
    assert reader.is_done.is_set()
    assert all(each >= 0 for each in reader.latencies)
    assert compute_quantiles([3.0, 1.0, 2.0]) == {"p50": 2.0, "p95": 3.0, "p99": 3.0, "max": 3.0}


@pytest.mark.asyncio
async def test_every_delta_of_the_far_end_comes_through_the_relay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The source, the plain relay and the counting reader, as the bench joins them."""
    with server.start(pace=0, rate=400) as api:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", api.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "bench")
        plain: Any = make_application("claude-sonnet-5-5")
        with server.Server(plain) as relay:
            relay.start()
            monkeypatch.setattr(reader_process, "_wait_for_start", _at_once)
            job = streaming.make_job([{}, {}], 0.4, "relay") | {"url": relay.url, "ramp": 0.0}
            monkeypatch.setattr(reader_process, "_ask_stored", _nothing)
            async with open_client() as client:
                said = await reader_process.measure_stream(job | {"is_compared": True}, client)
    counted = [said[name] for name in ("deltas", "late", "missing", "unstored")]
    assert counted == [2 * job["deltas"], 0, 0, 0]
    assert set(said["latency"]) == {"p50", "p95", "p99", "max"}


async def _at_once(ready: int) -> None:
    await asyncio.sleep(0)


async def _nothing(found: dict[str, Any]) -> dict[str, list[str]]:
    await asyncio.sleep(0)
    return {}
