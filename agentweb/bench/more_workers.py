"""Does each worker more add its share? A burst of turns with one, two and three workers.

Each worker is bound to a core, in turn, and what a turn costs and how the turns are shared out is
measured. How soon the first words come is measured, too, but on a small machine the web process,
PostgreSQL, the emulator and the readers need the same cores, so more workers cannot make it sooner
there. For more cores it is computed by a model of the queue: people ask evenly within a second, and
the process that has most to do is through with them when it has worked for as long as it did here.
The last waits for what of that is beyond the second, 95 % at most 95 % of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from agentweb.bench.processes import wait_for_output
from agentweb.bench.site_under_test import SCALED, Site, run_emulator, run_site
from agentweb.bench.streaming import RATE
from agentweb.bench.turn_cost import BURST_SECONDS, ask_at_once

COUNTS = (1, 2, 3)
#: People who ask within a second; before that so many for each worker, whose first turn makes much.
_ASKS, _BEFORE = 200, 40
Row = dict[str, Any]


def measure(counts: Sequence[int], report: Callable[[Row], None], asks: int = _ASKS) -> list[Row]:
    """Measure a burst with each number of workers, each on a site of its own."""
    found = []
    with run_emulator(RATE) as api:
        for count in counts:
            with run_site(SCALED, api) as tested:
                _start_workers(tested, count)
                ask_at_once(tested, SCALED, min(asks, _BEFORE * count))
                done = ask_at_once(tested, SCALED, asks)
                found.append(describe_burst(count, asks, done.spent, done.found))
                report(found[-1])
    return found


def _start_workers(tested: Site, count: int) -> None:
    """Replace the site's worker by so many, each on one core."""
    tested.parts.pop("worker").stop()
    cores = sorted(os.sched_getaffinity(0))
    for number in range(count):
        name = f"worker {number + 1}"
        with running_on(cores[number % len(cores)]):
            tested.start(name, ["manage.py", "worker"])
        wait_for_output(tested.parts[name], "runs up to")


@contextmanager
def running_on(core: int) -> Iterator[None]:
    """Bind this thread, and what it starts, to a core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def describe_burst(count: int, asks: int, spent: dict[str, float], found: Row) -> Row:
    """Describe a burst by the seconds of the processor that its parts took, by name."""
    workers = [seconds for name, seconds in spent.items() if name.startswith("worker")]
    slowest = max(*workers, spent["web"])
    return {
        "workers": count,
        "asks": asks,
        "worker_milliseconds": round(1e3 * sum(workers) / asks, 1),
        "milliseconds": round(1e3 * sum(spent.values()) / asks, 1),
        "busiest_percent": round(100 * max(workers) / sum(workers)),
        "first_p95": found["first"].get("p95", 0.0),
        "model_p95": round(predict_wait(slowest)),
        "refused": found["refused"],
    }


def predict_wait(seconds: float) -> float:
    """Return the milliseconds that 95 % wait at most for a process that needs so long for all."""
    return 950 * max(0.0, seconds - BURST_SECONDS)


def format_line(row: Row) -> str:
    workers = "1 worker" if row["workers"] == 1 else f"{row['workers']} workers"
    return (
        f"{workers}, {row['asks']} ask within a second:"
        f" {row['milliseconds']:.1f} ms of the processor a turn, the workers'"
        f" {row['worker_milliseconds']:.1f} (the busiest {row['busiest_percent']} % of that); first"
        f" word p95 {row['first_p95']:,.0f} ms here, {row['model_p95']:,} by the model with a core"
        f" for each process; {row['refused']} refused"
    )
