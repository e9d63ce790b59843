"""The runs of pytest that together are the whole suite, and what became of them.

There are two databases in runs of their own, because Django has one default connection and the code
under test uses it. The core's own tests are a run of their own, because only they are measured for
coverage, which takes longer than most of what it watches; the browser's and those of processes,
because they wait more than they work; the pages' and the faults', because no run should take longer
than all that goes on beside it. All pages are shown and all faults happen on PostgreSQL, and every
fourth test of pages and every second of faults on SQLite, on which the browser and half of the
processes of the other runs are: what differs between the two lies in services and queries, whose
own tests are all run on both.

A test that fails beside other runs is run once more when nothing else runs, and named: what then
fails has failed, and where more than a few failed nothing is run again. The runs share the
processors; a machine that had no time breaks no law, and a broken law is broken alone, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from django.conf import settings

PYTHON = (sys.executable, "-m")
SETTINGS = "--ds=tests.settings"
BROWSER = ("tests/e2e",)
OF_THE_CORE = ("tests/context", "tests/agent")
#: Long stories that reach no line which the core's other tests do not: not measured.
STORIES = ("tests/context/test_laws.py",)
#: What people and attackers see, and what else depends on the database.
OF_THE_PAGES = ("tests/web", "tests/attacks", "tests/agentweb", "tests/bench", "tests/rendering")
OF_THE_DATABASE = tuple(
    f"tests/{room}"
    for room in (
        "accounts", "audit", "budgets", "files", "inspector", "library", "live", "log",
        "operations", "reductions", "runtime", "toolbox", "transcript", "transfer", "turns",
    )
)  # fmt: skip
OF_FAULTS = ("tests/faults",)
#: What is around the app: its model's API, servers, tools; and whole processes, which mostly wait.
AROUND = ("tests/edge", "tests/emulator", "tests/scaled", "tests/tools")
OF_PROCESSES = ("tests/rig",)
#: The programs of a run: pytest, and pytest watched for what it covers.
PLAIN, MEASURED = ("pytest",), ("coverage", "run", "--parallel-mode", "-m", "pytest")
#: Failures of one run that are looked at once more.
MOST_AGAIN = 3
_PATIENT = ("-o", "faulthandler_timeout=600")  # seconds: the runs share the processors
#: Counts of a run that left none: it did not end, which is a failure.
_LOST: dict[str, Any] = {"passed": 0, "failed": 1, "error": 0, "skipped": 0, "broken": []}


@dataclass(frozen=True, slots=True)
class Suite:
    """A run of pytest: folders, left-out folders, a database, a program."""

    name: str
    folders: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    database: str = "sqlite"
    #: "database": those that depend on it. Not "": without what the other run has.
    only: str = ""
    #: Of tests that another run has on its database, every so many are in this one.
    share: int = 1
    program: tuple[str, ...] = PLAIN

    def tally(self, data: Path) -> Path:
        return data / f"{self.name.replace(' ', '-')}.json"

    def run(self, data: Path) -> tuple[bool, str]:
        """Run it, and say which test it died in if it did not come to its end."""
        tally = self.tally(data)
        environment = {
            "AGENTWEB_TEST_DATABASE": self.database,
            "AGENTWEB_TEST_ONLY": self.only,
            "AGENTWEB_TEST_SHARE": str(self.share),
            "AGENTWEB_TEST_TALLY": str(tally),
            "AGENTWEB_TEST_PREPARED": str(data / "prepared"),
            "COVERAGE_FILE": str(data / "coverage"),
        }
        paths = (*present(self.folders), *(f"--ignore={one}" for one in present(self.without)))
        pytest = (*PYTHON, *self.program, SETTINGS, *_PATIENT, "-q", "--durations=12", *paths)
        good, said = command(*pytest, **environment)(data)
        if not tally.exists() and (last := tally.with_suffix(".at")).exists():
            said += f"\nIt ended in the middle of {last.read_text(encoding='utf-8')}\n"
        return good, said

    def again(self, data: Path) -> tuple[bool, str]:
        """Run the few that failed once more; where they are good, so is the run."""
        first = counts(self.tally(data))
        if not 0 < len(first["broken"]) <= MOST_AGAIN:
            return False, ""
        alone = replace(
            self, name=f"{self.name} again", folders=tuple(first["broken"]), without=(),
            program=PLAIN,
        )  # fmt: skip
        good, said = alone.run(data)
        if good:
            saved = first | {"passed": first["passed"] + len(first["broken"])}
            saved |= {"failed": 0, "error": 0, "broken": []}
            self.tally(data).write_text(json.dumps(saved), encoding="ascii")
            said += "".join(
                f"Failed beside others, passed alone: {one}\n" for one in first["broken"]
            )
        return good, said


#: The longest first, so that the last ones end at about the same time.
SUITES = (
    Suite("processes", OF_PROCESSES, only="sqlite"),
    Suite("browser", BROWSER),
    Suite("pages on postgres", OF_THE_PAGES, database="postgres", only="database"),
    Suite("domains on postgres", OF_THE_DATABASE, database="postgres", only="database"),
    Suite(
        "all else on sqlite", only="sqlite",
        without=(*OF_THE_PAGES, *AROUND, *OF_PROCESSES, *BROWSER, *OF_THE_CORE, *OF_FAULTS),
    ),
    Suite("pages on sqlite", OF_THE_PAGES, only="sqlite", share=4),
    Suite(
        "faults on postgres", (*OF_FAULTS, "tests/edge", "tests/rig", "tests/scaled"),
        database="postgres", only="database",
    ),
    Suite("around the app", (*AROUND, *STORIES), only="sqlite"),
    Suite("faults on sqlite", OF_FAULTS, only="sqlite", share=2),
    Suite("core", OF_THE_CORE, without=STORIES, program=MEASURED),
)  # fmt: skip


def command(*words: str, **environment: str) -> Callable[[Path], tuple[bool, str]]:
    """Make a check of a command that succeeds or says why not."""

    def run(data: Path) -> tuple[bool, str]:
        env = os.environ | {"AGENTWEB_DATA_DIR": str(data)} | environment
        # A file: whoever outlives the command would keep a pipe open for ever.
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace", dir=data) as said:
            done = subprocess.run(
                words, check=False, cwd=settings.BASE_DIR, env=env,
                stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT,
            )  # fmt: skip
            said.seek(0)
            return done.returncode == 0, said.read()

    return run


def present(paths: tuple[str, ...]) -> list[str]:
    """Leave out folders that are not there; a test is named by its file and its own name."""
    return [one for one in paths if (settings.BASE_DIR / one.partition("::")[0]).exists()]


def counts(tally: Path) -> dict[str, Any]:
    found: dict[str, Any] = _LOST
    if tally.exists():
        found = json.loads(tally.read_text(encoding="ascii"))
    return found


def summed(tallies: list[Path]) -> tuple[int, int, int]:
    """Add up the runs: passed, failed, skipped."""
    rows = [counts(tally) for tally in tallies]
    failed = sum(row["failed"] + row["error"] for row in rows)
    return sum(row["passed"] for row in rows), failed, sum(row["skipped"] for row in rows)
