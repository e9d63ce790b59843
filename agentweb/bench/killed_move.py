"""A move of a site that is killed at random moments, and goes on until it is complete."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from agentweb.bench.processes import Process, start_process

#: What a move says when a part of it begins, in their order, and when it has ended.
_BEGINS = {
    "reading": "Reading the source",
    "copying": "Copying.",
    "finishing": "Putting foreign keys",
    "comparing": "Reading the copy",
}
_IS_MOVED = "rows are the same in both databases"
#: How often a kill of each part is drawn.
_WEIGHTS = {"reading": 2, "copying": 6, "finishing": 1, "comparing": 1}
#: Of the tables that a move reads it says so many lines at least.
_TABLES = 20
#: Seconds of silence while keys, triggers and the index are put back, for each batch.
_SECONDS_A_BATCH = 0.002
#: Seconds between two looks at a process.
_PAUSE = 0.01


@dataclass(frozen=True, slots=True)
class Moment:
    """When a move is killed: in which part of it, and how many lines or seconds after it began."""

    part: str
    lines: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Moved:
    """What a move took, with all its runs; seconds of processor time, bytes at most."""

    kills: list[str] = field(default_factory=list)
    processor: float = 0.0
    #: Of the last run: until the rows were the same, and with the verification behind it.
    last: float = 0.0
    peak: int = 0
    verified_peak: int = 0
    said: str = ""


def plan_kills(count: int, batches: int, chance: random.Random) -> list[Moment]:
    """Draw moments; those of the copying are spread over all batches."""
    names, weights = list(_WEIGHTS), list(_WEIGHTS.values())
    parts = chance.choices(names, weights, k=count)
    copying = sorted(chance.randint(1, max(1, batches)) for part in parts if part == "copying")
    found = [Moment("copying", max(1, end - at)) for at, end in pairwise([0, *copying])]
    for part in parts:
        if part == "reading":
            moment = Moment(part, chance.randint(0, _TABLES))
            found.insert(chance.randint(0, len(found)), moment)
    silent = batches * _SECONDS_A_BATCH
    found += (
        Moment("finishing", seconds=chance.uniform(0, silent))
        for _ in range(parts.count("finishing"))
    )
    found += (
        Moment("comparing", chance.randint(0, _TABLES)) for _ in range(parts.count("comparing"))
    )
    return found


def move_site(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    moments: Sequence[Moment],
    say: Callable[[str], None],
) -> Moved:
    """Run a move, kill it at each moment, and run it to its end; raises RuntimeError."""
    moved = Moved()
    for number, moment in enumerate([*moments, None]):
        process = start_process(f"move-{number}", command, folder, environment)
        run = _Run(process)
        for _ in run.watch():
            if moment is not None and run.has_come(moment):
                process.popen.send_signal(signal.SIGKILL)
                process.popen.wait()
                moved.kills.append(moment.part)
                say(f"killed while {moment.part}, after {run.processor:.0f} s of processor time")
                break
        moved.processor += run.processor
        moved.peak = max(moved.peak, run.peak)
        if process.popen.returncode == -signal.SIGKILL and moment is not None:
            continue
        moved.last, moved.verified_peak, moved.said = run.processor, run.verified_peak, run.text
        if process.popen.returncode:
            raise RuntimeError(f"the move failed:\n{run.text[-2_000:]}")
        return moved
    raise AssertionError  # the last run has no moment


class _Run:
    """A running move: what it said, and what it uses."""

    def __init__(self, process: Process) -> None:
        self.processor, self.peak, self.verified_peak = 0.0, 0, 0
        self.text = ""
        self._process, self._since = process, 0.0

    def watch(self) -> Iterator[None]:
        """Look at the process again and again until it ends."""
        pid = self._process.popen.pid
        while True:
            self.processor = max(self.processor, self._process.processor)
            peak = _read_peak(pid)
            self.verified_peak = max(self.verified_peak, peak)
            has_ended = self._process.popen.poll() is not None
            self.text = self._process.read_output()
            if _IS_MOVED not in self.text:
                self.peak = max(self.peak, peak)
            if has_ended:
                return
            yield
            time.sleep(_PAUSE)

    def has_come(self, moment: Moment) -> bool:
        """Return whether the moment has come, or the part of it is over."""
        _, begun, rest = self.text.partition(_BEGINS[moment.part])
        if not begun:
            return False
        self._since = self._since or time.monotonic()
        if time.monotonic() - self._since < moment.seconds:
            return False
        word = "rows copied" if moment.part == "copying" else "\n"
        later = [*_BEGINS.values(), _IS_MOVED][list(_BEGINS).index(moment.part) + 1 :]
        return rest.count(word) >= moment.lines or any(words in rest for words in later)


def _read_peak(pid: int) -> int:
    """Return the bytes that a process had in memory at most."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)


def measure_command(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], name: str
) -> dict[str, Any]:
    """Run a command to its end; return its code, output, processor time and memory at most."""
    run = _Run(start_process(name, command, folder, environment))
    for _ in run.watch():
        time.sleep(_PAUSE)
    return {
        "code": run._process.popen.returncode, "said": run.text, "processor": run.processor,
        "peak": run.verified_peak,
    }  # fmt: skip
