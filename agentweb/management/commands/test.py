"""Everything that must hold, as one command: style, types, layers, migrations, then the tests.

`manage.py test` runs it all, `manage.py test ARGUMENTS` only pytest with these. The suite runs on
SQLite. What depends on the database runs again on a real PostgreSQL that it starts itself: of the
folders of the runs on it every test that has Django's connection, or whose file asks which database
it is on, but a slice of some matrices (tests/support/one_database.py); of the pages' and faults'
tests it is a share on SQLite that runs again. What is of one database alone runs on that one, and
is no skipped test on the other. pytest-django refuses the connection to a test that does not ask
for it, so what runs once (the core, tools, the browser, processes of their own) cannot depend on
it.

All of it goes through one queue, the longest first, into more places than there are processors,
because half of what a run takes is waiting. A run that never ends is cut off by pytest's time limit
for a test, and named.

Three runs are too long for every day. `--thorough [COUNT] [FIRST]` lives 100,000 generated
conversations, and shortens texts at every limit, where the suite takes a slice. `--mutations
[FILE...]` breaks the context engine on purpose and fails unless its tests notice. `--chaos [KILLS]
[SEED]` kills 2,000 processes while people talk, where the suite kills ten of each kind.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand

from agentweb.doctor.lock_files import complaints
from agentweb.testing.suites import PYTHON, SETTINGS, SUITES, command, summed

WHOLLY_COVERED = (
    "conversations/context/*,conversations/agent/loop.py,conversations/agent/prepare.py"
)
PRODUCTION = {
    "AGENTWEB_HTTPS": "true",
    "AGENTWEB_HOSTS": "chat.example.org",
    "SECRET_KEY": "long, random and only for this check: 7Hq2-vX9z_Lm4sTb8RcWd1KpYf6",
}
#: Runs of their own: the module that is run, and tests that then do all instead of a slice.
LONG_RUNS: dict[str, tuple[str, tuple[str, ...]]] = {
    "--thorough": ("tests.context.thorough", ("tests/context/test_shortened.py",)),
    "--mutations": ("tests.mutations", ()),
    "--chaos": ("tests.rig.chaos", ()),
}
#: Runs beside those that the processors have time for.
_WAITING = 3
_LINT = str(Path(sys.executable).with_name("lint-imports"))


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    run: Callable[[Path], tuple[bool, str]]
    #: What it says is shown when it is good, too.
    is_shown: bool = False


def locks(_: Path) -> tuple[bool, str]:
    found = complaints(settings.BASE_DIR)
    return not found, "\n".join(found)


_MANAGE = (sys.executable, "manage.py")
CHECKS = (
    Check("mypy", command(*PYTHON, "mypy")),
    Check("ruff check", command(*PYTHON, "ruff", "check", "--quiet", ".")),
    Check("ruff format", command(*PYTHON, "ruff", "format", "--check", ".")),
    Check("djlint", command(*PYTHON, "djlint", "--check", "--lint", "templates")),
    Check("lint-imports", command(_LINT)),
    Check("locks", locks),
    Check("makemigrations", command(*_MANAGE, "makemigrations", "--check", "--dry-run")),
    Check(
        "check --deploy",
        command(*_MANAGE, "check", "--deploy", "--fail-level", "WARNING", **PRODUCTION),
    ),
)


class Command(BaseCommand):
    help = "Checks and tests everything; with arguments, runs pytest with them."

    def run_from_argv(self, argv: list[str]) -> None:
        """Leave the arguments to pytest, which would not pass Django's own reader."""
        if argv[2:] in (["--help"], ["-h"]):
            self.stdout.write(
                f"{self.help}\nTry `manage.py test --co -q` or `-k WORD`.\n"
                "--thorough [COUNT] [FIRST] lives 100,000 generated conversations, "
                "--mutations [FILE...] breaks the engine on purpose, "
                "--chaos [KILLS] [SEED] kills processes while people talk."
            )
            return
        if argv[2:3] and argv[2] in LONG_RUNS:
            sys.exit(self._long_run(*LONG_RUNS[argv[2]], *argv[3:]))
        sys.exit(self._pytest(*argv[2:]) if argv[2:] else self._everything())

    def _long_run(self, module: str, tests: tuple[str, ...], *arguments: str) -> int:
        code = self._stream(*PYTHON, module, *arguments)
        if code or not tests or arguments:
            return code
        return self._stream(*PYTHON, "pytest", SETTINGS, "-q", *tests, AGENTWEB_TEST_THOROUGH="1")

    def _everything(self) -> int:
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="agentweb-check-") as folder:
            data = Path(folder)
            suites = [Check(suite.name, suite.run, is_shown=True) for suite in SUITES]
            broken = self._all(data, (*suites, *CHECKS))
            broken = self._again(data, broken)
            broken += self._coverage(data)
            passed, failed, skipped = summed([suite.tally(data) for suite in SUITES])
        if broken:
            self.stdout.write(f"not good: {', '.join(broken)}")
        self.stdout.write(f"{time.monotonic() - started:.0f} s in all")
        # A run that is not good never closes on "0 failed", whatever it was that failed.
        failed = max(failed, len(broken))
        closing = f"{passed} passed, {failed} failed"
        self.stdout.write(f"{closing}, {skipped} skipped" if skipped else closing)
        return 1 if failed else 0

    def _all(self, data: Path, checks: tuple[Check, ...]) -> list[str]:
        """Run them side by side, show each when it has ended and name those that are broken."""

        def timed(check: Check) -> tuple[Check, bool, str, float]:
            started = time.monotonic()
            return (check, *check.run(data), time.monotonic() - started)

        broken = []
        with ThreadPoolExecutor((os.cpu_count() or 1) + _WAITING) as pool:
            for ended in as_completed([pool.submit(timed, check) for check in checks]):
                check, good, said, took = ended.result()
                if check.is_shown or not good:
                    self.stdout.write(said)
                self._line(check.name, good, took)
                if not good:
                    broken.append(check.name)
        return broken

    def _again(self, data: Path, broken: list[str]) -> list[str]:
        """Look once more, one after the other, at runs of which few tests failed."""
        mended = set()
        for suite in SUITES:
            if suite.name in broken:
                started = time.monotonic()
                good, said = suite.again(data)
                if said:
                    self.stdout.write(said)
                    self._line(f"{suite.name} again", good, time.monotonic() - started)
                if good:
                    mended.add(suite.name)
        return [name for name in broken if name not in mended]

    def _pytest(self, *arguments: str) -> int:
        return self._stream(*PYTHON, "pytest", SETTINGS, *arguments)

    def _coverage(self, data: Path) -> list[str]:
        """Hold the core to being covered whole, every branch of it."""
        environment = {"COVERAGE_FILE": str(data / "coverage")}
        tool = (*PYTHON, "coverage")
        command(*tool, "combine", "--quiet", str(data), **environment)(data)
        core = ("report", f"--include={WHOLLY_COVERED}", "--fail-under=100")
        good, report = command(*tool, *core, **environment)(data)
        self._line("coverage of the core 100 %", good, None)
        if not good:
            self.stdout.write(report)
        return [] if good else ["coverage"]

    def _stream(self, *words: str, **environment: str) -> int:
        """Run a program in this one's terminal."""
        self.stdout.flush()
        env = os.environ | environment
        return subprocess.run(words, check=False, cwd=settings.BASE_DIR, env=env).returncode

    def _line(self, name: str, good: bool, took: float | None) -> None:
        mark = self.style.SUCCESS("ok    ") if good else self.style.ERROR("FAILED")
        self.stdout.write(f"{mark} {name:32}" + (f" {took:6.1f} s" if took is not None else ""))
        self.stdout.flush()
