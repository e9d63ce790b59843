"""Memory of a web process over hours of conversations, turns and sockets that come and go.

Every `CYCLE` seconds some people open their pages, ask, read their answers and leave; every fifth
time a hundred pages are open that only look. Between two cycles, when nothing runs, the resident
memory is read: the curve. Its slope is that of a straight line through the later three quarters by
least squares, with twice its standard error as bound: memory grows where the slope is above
`MOST_SLOPE` by more than the bound. A curve shorter than `LEAST_MINUTES` is not judged: the caches
of a process fill in its first ten minutes, which on a short curve looks like growth. After that,
200 answers at once show what they add: not before, because what they leave behind is room in which
the curve could grow unseen.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import sqrt
from statistics import linear_regression
from typing import Any

from agentweb.bench.measured_job import run_job
from agentweb.bench.site_under_test import EMBEDDED, Site, run_emulator, run_site
from agentweb.bench.streaming import RATE, make_job

#: Seconds of a cycle and of an answer in it; answers of a cycle, and sockets of a fifth one.
CYCLE, ANSWER, ANSWERS, SOCKETS = 20.0, 4.0, 8, 100
#: People with conversations each, who take turns.
PEOPLE, CHATS = 40, 5
#: Answers at once, and their seconds.
BURST, BURST_SECONDS = 200, 10.0
#: Megabytes an hour that memory may grow, and megabytes that the answers at once may add.
MOST_SLOPE, MOST_BURST = 2.0, 60.0
#: Minutes of the shortest curve that is judged.
LEAST_MINUTES = 120
#: The marks of its part of the README, and the folder of its kept runs.
MARKS = "soak"
_Row = dict[str, Any]


def measure(minutes: float, report: Callable[[str], None]) -> _Row:
    """Measure the curve, then 200 answers at once."""
    with run_emulator(RATE) as api, run_site(EMBEDDED, api) as tested:
        run_job(tested, make_job(tested.people(1), 1.0))
        samples = _take_curve(tested, 60 * minutes, report)
        burst = measure_burst(tested, BURST, BURST_SECONDS)
        report(format_burst(burst))
    return {"minutes": minutes, "burst": burst, "samples": samples} | judge(samples)


def measure_burst(tested: Site, count: int, seconds: float) -> _Row:
    """Have `count` answers at the same time; return megabytes before, at most and after."""
    job = make_job(tested.people(count), seconds)
    before, most = _read_megabytes(tested), 0.0

    def watch() -> None:
        nonlocal most
        until = time.monotonic() + seconds + job["ramp"]
        while time.monotonic() < until:
            most = max(most, _read_megabytes(tested))
            time.sleep(0.25)

    run_job(tested, job, watch)
    time.sleep(3)
    after = _read_megabytes(tested)
    most = max(most, after)
    return {
        "answers": count,
        "before": before,
        "most": most,
        "after": after,
        "added": round(most - before, 1),
    }


def _take_curve(tested: Site, seconds: float, report: Callable[[str], None]) -> list[_Row]:
    made = tested.people(PEOPLE, CHATS)
    # One chat of each person after the other, since a person may have few answers at once.
    people = [chat for first in range(CHATS) for chat in made[first::CHATS]]
    began = time.monotonic()
    samples: list[_Row] = []
    cycle = turns = 0
    while time.monotonic() - began < seconds:
        due = began + CYCLE * (cycle + 1)
        chats = [people[(cycle * ANSWERS + at) % len(people)] for at in range(ANSWERS)]
        run_job(tested, make_job(chats, ANSWER))
        turns += len(chats)
        if cycle % 5 == 4:
            looking = (people * 2)[:SOCKETS]
            run_job(tested, {"kind": "idle", "chats": looking, "seconds": 2.0})
        cycle += 1
        time.sleep(max(0.0, due - time.monotonic()))
        samples.append({
            "seconds": round(time.monotonic() - began),
            "megabytes": _read_megabytes(tested),
            "turns": turns,
            "files": tested.parts["web"].files,
            "processor": round(tested.parts["web"].processor, 1),
        })  # fmt: skip
        if cycle % 15 == 0:
            report(format_sample(samples[-1]))
    return samples


def judge(samples: list[_Row]) -> _Row:
    """Return the slope in megabytes an hour, its bound, and whether memory is flat.

    All are None for less than `LEAST_MINUTES`; the last sample may come a cycle before the end.
    """
    kept = samples[len(samples) // 4 :]
    if not samples or samples[-1]["seconds"] + CYCLE < 60 * LEAST_MINUTES:
        return {"slope": None, "bound": None, "is_flat": None}
    hours = [row["seconds"] / 3600 for row in kept]
    sizes = [row["megabytes"] for row in kept]
    slope, start = linear_regression(hours, sizes)
    rest = sum((size - start - slope * at) ** 2 for at, size in zip(hours, sizes, strict=True))
    middle = sum(hours) / len(hours)
    spread = sum((at - middle) ** 2 for at in hours)
    bound = 2 * sqrt(rest / (len(kept) - 2) / spread)
    return {
        "slope": round(slope, 1),
        "bound": round(bound, 1),
        "is_flat": slope - bound <= MOST_SLOPE,
    }


def _read_megabytes(tested: Site) -> float:
    return round(tested.parts["web"].own_memory / 1e6, 1)


def format_sample(row: _Row) -> str:
    return (
        f"after {row['seconds'] / 60:.0f} minutes and {row['turns']} turns: {row['megabytes']} MB,"
        f" {row['files']} files"
    )


def format_burst(row: _Row) -> str:
    return (
        f"{row['answers']} answers at once: {row['before']} MB before, {row['most']} at most"
        f" ({row['added']} added, {judge_burst(row)} {MOST_BURST:g}), {row['after']} after"
    )


def judge_burst(row: _Row) -> str:
    return "within the bound of" if row["added"] <= MOST_BURST else "above the bound of"


def format_slope(row: _Row) -> str:
    if row["slope"] is None:
        return f"No slope is read from less than {LEAST_MINUTES / 60:g} hours."
    verdict = "flat" if row["is_flat"] else "growing"
    return f"The slope is {row['slope']} ± {row['bound']} MB an hour: {verdict}."


def render(found: _Row) -> str:
    """Render the part of the README."""
    samples, machine = found["samples"], found["machine"]
    points = [samples[at * (len(samples) - 1) // 8] for at in range(9)] if samples else []
    rows = "".join(f" {row['megabytes']:.0f} |" for row in points)
    minutes = "".join(f" {row['seconds'] / 60:.0f} |" for row in points)
    turns = samples[-1]["turns"] if samples else 0
    head = (
        f"Measured by `manage.py bench soak --minutes {found['minutes']:g}` on"
        f" {machine['date'][:10]}, embedded, load {machine['load']} before: {turns} turns."
        f" {format_slope(found)} After that {format_burst(found['burst'])}."
    )
    table = [f"| minutes |{minutes}", "|---|" + "---:|" * len(points), f"| MB |{rows}"]
    return "\n".join([head, "", *table])
