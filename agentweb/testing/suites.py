"""The runs of pytest that together are all tests, and the counts that each leaves.

Each database needs a run of its own, because Django has one default connection and the code under
test uses it. The core's tests are a run of their own, because only they are measured for coverage,
which takes longer than most of what it watches; the browser's and those of processes, because they
mostly wait; the pages' and the faults', because no run should take longer than all that goes on
beside it. All pages and faults are tested on PostgreSQL, and every eighth test of pages and every
fourth of faults on SQLite: what differs between the two lies in the packages that query the
database, whose own tests all run on both. The packages above those, whose queries are Django's and
few, are shared out as pages are; whole turns run on SQLite in every rig and in the browser.

Why not a library. nox and tox run sessions that differ one after the other, or each in an
environment of its own. pytest-xdist shares the tests of one run among workers, so it would replace
the folders below, not the two databases, the measured run and the linters; and each worker imports
and collects every test: 14 s of processor time, for five workers on two databases 140 s, where the
runs below together take 48 s, and PostgreSQL, Redis, Dovecot and Chromium would be started by each
worker. pytest-rerunfailures repeats a test at once and in the same process, which does not tell a
test that fails for want of processor time from one that is broken.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from django.conf import settings

from agentweb.testing.parallel_commands import Check, Result, run_check

PYTHON = (sys.executable, "-m")
SETTINGS = "--ds=tests.settings"
BROWSER = ("tests/e2e",)
CORE = ("tests/context", "tests/agent")
#: Long tests that reach no line which the core's other tests do not: not measured for coverage.
STORIES = ("tests/context/test_laws.py",)
#: Tests of pages and attacks, and of what else depends on the database.
PAGES = ("tests/web", "tests/attacks", "tests/agentweb", "tests/bench", "tests/rendering")
DOMAINS = tuple(
    f"tests/{package}"
    for package in (
        "accounts", "alerts", "audit", "budgets", "files", "inspector", "invitations", "library",
        "live", "log", "models", "operations", "reductions", "runtime", "saved_prompts", "toolbox",
        "transcript", "transfer", "turns",
    )
)  # fmt: skip
#: Those of them that ask the database through the others.
ABOVE = (
    "tests/alerts", "tests/inspector", "tests/invitations", "tests/reductions", "tests/runtime",
    "tests/transfer",
)  # fmt: skip
#: Replays without rows, and commands that take the catalogue from the database.
LAB = ("tests/lab",)
FAULTS = ("tests/faults",)
#: Tests around the app: API client, servers, tools; and whole processes, which mostly wait.
AROUND = ("tests/edge", "tests/emulator", "tests/scaled", "tests/tools")
PROCESSES = ("tests/rig",)
#: The programs of a run: pytest, and pytest under coverage.
PLAIN, MEASURED = ("pytest",), ("coverage", "run", "--parallel-mode", "-m", "pytest")
#: Most failures of one run that are retried.
MOST_RETRIED = 3
#: Seconds after which a stuck test is ended; runs share the processors, so it is long.
_PATIENT = ("-o", "faulthandler_timeout=600")


@dataclass(frozen=True, slots=True)
class Suite:
    """A run of pytest: folders, excluded folders, a database, a program."""

    name: str
    folders: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    database: str = "sqlite"
    #: "database": only tests that depend on the database. Not "": without those that another run
    #: has.
    only: str = ""
    #: Of the tests that another run has on its database, run one in `share` here too.
    share: int = 1
    program: tuple[str, ...] = PLAIN
    #: Whether its tests mostly wait for other processes: it begins first and goes before others.
    waits: bool = False

    def tally_file(self, data: Path) -> Path:
        """Return the file in which tests/conftest.py leaves the counts of the run."""
        return data / f"{self.name.replace(' ', '-')}.json"

    def make_check(self, data: Path) -> Check:
        """Return the command of the run as a Check."""
        environment = {
            "AGENTWEB_TEST_DATABASE": self.database,
            "AGENTWEB_TEST_ONLY": self.only,
            "AGENTWEB_TEST_SHARE": str(self.share),
            "AGENTWEB_TEST_TALLY": str(self.tally_file(data)),
            "AGENTWEB_TEST_PREPARED": str(data / "prepared"),
            "COVERAGE_FILE": str(data / "coverage"),
        }
        without = (f"--ignore={one}" for one in keep_present(self.without))
        paths = (*keep_present(self.folders), *without)
        pytest = (*self.program, SETTINGS, *_PATIENT, "-q", "--durations=12", *paths)
        return Check(self.name, (*PYTHON, *pytest), environment, self.waits)

    def read_counts(self, data: Path) -> Counts:
        """Return the counts of the run; one failure if it did not reach its end."""
        tally = self.tally_file(data)
        if tally.exists():
            row: dict[str, Any] = json.loads(tally.read_text(encoding="ascii"))
            failed = row["failed"] + row["error"]
            return Counts(row["passed"], failed, row["skipped"], tuple(row["broken"]))
        return Counts(failed=1)

    def read_last_test(self, data: Path) -> str:
        """Return the test in which a run ended early; "" if it reached its end."""
        tally = self.tally_file(data)
        last = tally.with_suffix(".at")
        return last.read_text(encoding="utf-8") if last.exists() and not tally.exists() else ""


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of tests; `broken` names failed ones, `retried` those that passed on a retry."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    broken: tuple[str, ...] = ()
    retried: tuple[str, ...] = ()

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped,
            self.broken + other.broken, self.retried + other.retried,
        )  # fmt: skip


#: What waits, then the longest first, so that the last ones end at about the same time.
SUITES = (
    Suite("processes", PROCESSES, only="sqlite", waits=True),
    Suite("browser", BROWSER, waits=True),
    Suite(
        "faults on postgres", (*FAULTS, "tests/edge", "tests/rig", "tests/scaled"),
        database="postgres", only="database", waits=True,
    ),
    Suite("pages on postgres", PAGES, database="postgres", only="database"),
    Suite("domains on postgres", (*DOMAINS, *LAB), database="postgres", only="database"),
    Suite(
        "all else on sqlite", only="sqlite",
        without=(*PAGES, *ABOVE, *AROUND, *PROCESSES, *BROWSER, *CORE, *FAULTS),
    ),
    Suite("pages on sqlite", (*PAGES, *ABOVE), only="sqlite", share=8),
    Suite("around the app", (*AROUND, *STORIES), only="sqlite"),
    Suite("faults on sqlite", FAULTS, only="sqlite", share=4),
    Suite("core", CORE, without=STORIES, program=MEASURED),
)  # fmt: skip
#: The quick subset: shows within two minutes whether a change broke the core or a domain.
QUICK = (
    Suite("domains on sqlite", DOMAINS, only="sqlite"),
    Suite("core", CORE, without=STORIES),
)


def retry_failures(suite: Suite, data: Path) -> tuple[Result | None, Counts]:
    """Run the few failures of a run once more, with nothing beside them.

    Returns the result, None where none or too many had failed, and the counts with those that pass
    now as `retried`. A test that fails beside other runs and passes alone is flaky, since runs
    share the processors. A test that fails alone is broken.
    """
    first = suite.read_counts(data)
    if not 0 < len(first.broken) <= MOST_RETRIED:
        return None, first
    alone = replace(
        suite, name=f"{suite.name} again", folders=first.broken, without=(), program=PLAIN
    )
    result = run_check(alone.make_check(data), data)
    still = set(first.broken) & set(alone.read_counts(data).broken)
    if not result.is_good and not still:
        return result, first
    saved = tuple(one for one in first.broken if one not in still)
    counts = Counts(
        first.passed + len(saved), len(still), first.skipped, tuple(sorted(still)), saved
    )
    return result, counts


def add_counts(rows: Iterable[Counts]) -> Counts:
    return sum(rows, Counts())


def keep_present(paths: Iterable[str]) -> list[str]:
    """Drop missing folders; a test is named by its file and its own name."""
    return [one for one in paths if (settings.BASE_DIR / one.partition("::")[0]).exists()]
