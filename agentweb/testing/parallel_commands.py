"""Runs commands in parallel, each with its own output, and reports those that fail."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings

#: Commands beyond the number of processors: half of a test run is waiting.
_EXTRA = 3
#: Niceness of what computes, so that what mostly waits has a processor as soon as it goes on.
_NICENESS = 5


@dataclass(frozen=True, slots=True)
class Check:
    """A command and the variables added to its environment."""

    name: str
    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    #: Whether it mostly waits, so that it goes before what computes.
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a check."""

    name: str
    is_good: bool
    output: str
    seconds: float


def run_check(check: Check, data: Path) -> Result:
    """Run a check with the test run's own data folder."""
    environment = os.environ | {"AGENTWEB_DATA_DIR": str(data), **check.environment}
    niceness = () if check.waits else ("nice", "-n", str(_NICENESS))
    started = time.monotonic()
    # A file, not a pipe: a process that outlives the command would keep a pipe open for ever.
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace", dir=data) as output:
        done = subprocess.run(
            (*niceness, *check.words), check=False, cwd=settings.BASE_DIR, env=environment,
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
        output.seek(0)
        seconds = time.monotonic() - started
        return Result(check.name, done.returncode == 0, output.read(), seconds)


def run_checks(checks: Iterable[Check], data: Path) -> Iterator[Result]:
    """Run checks concurrently, started in order; yield each result when it is ready."""
    with ThreadPoolExecutor((os.cpu_count() or 1) + _EXTRA) as pool:
        for ended in as_completed([pool.submit(run_check, check, data) for check in checks]):
            yield ended.result()
