"""Everything that must hold, as one command: style, types, layers, migrations, then the tests.

`manage.py test` runs it all, `manage.py test ARGUMENTS` only pytest with these, and `manage.py test
--quick` linters, the pure core and the domains' tests on SQLite. The whole runs on SQLite; what
depends on the database runs again on a real PostgreSQL that it starts itself: every test that has
Django's connection, or whose file asks which database it is on, but a slice of some matrices
(tests/support/one_database.py) and of the pages' and faults' tests on SQLite. pytest-django refuses
the connection to a test that does not ask for it, so what runs once cannot depend on it.

All of it goes through one queue into more places than there are processors, because half of what a
run takes is waiting. What mostly waits for other processes begins first and goes before what
computes: it takes longest, and processors would be idle if it were left for the end. A test that
never ends is cut off by pytest's time limit, and named. A few failures of a run are retried alone
at the end: those that pass are counted and listed, and with CI=true they fail the run, too.

Three runs are too long for every day. `--thorough [COUNT] [FIRST]` plays 100,000 generated
conversations, shortens texts at every limit and replays a recording by every classic preset, where
the suite takes a slice. `--mutations [FILE...]` breaks one law at a time on purpose and fails
unless the tests notice. `--chaos [KILLS] [SEED]` kills 2,000 processes while people talk, where the
suite kills ten of each kind.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from agentweb.testing.parallel_commands import Check, Result, run_check, run_checks
from agentweb.testing.suites import (
    PYTHON,
    QUICK,
    SETTINGS,
    SUITES,
    Counts,
    Suite,
    add_counts,
    retry_failures,
)

FULLY_COVERED = "conversations/context/*,conversations/agent/loop.py,conversations/agent/prepare.py"
PRODUCTION = {
    "AGENTWEB_HTTPS": "true",
    "AGENTWEB_HOSTS": "chat.example.org",
    "SECRET_KEY": "long, random and only for this check: 7Hq2-vX9z_Lm4sTb8RcWd1KpYf6",
}
#: Long runs: the module to run, and tests that then run in full instead of in part.
LONG_RUNS: dict[str, tuple[str, tuple[str, ...]]] = {
    "--thorough": (
        "tests.context.thorough",
        ("tests/context/test_shortened.py", "tests/lab/test_recorded.py"),
    ),
    "--mutations": ("tests.mutations", ()),
    "--chaos": ("tests.rig.chaos", ()),
}
_MANAGE = (sys.executable, "manage.py")
LINTERS = (
    Check("mypy", (*PYTHON, "mypy")),
    Check("ruff check", (*PYTHON, "ruff", "check", "--quiet", ".")),
    Check("ruff format", (*PYTHON, "ruff", "format", "--check", ".")),
    Check("djlint", (*PYTHON, "djlint", "--check", "--lint", "templates")),
    Check("lint-imports", (str(Path(sys.executable).with_name("lint-imports")),)),
    Check("makemigrations", (*_MANAGE, "makemigrations", "--check", "--dry-run")),
    Check(
        "check --deploy",
        (*_MANAGE, "check", "--deploy", "--fail-level", "WARNING"),
        PRODUCTION,
    ),
)


class Command(BaseCommand):
    help = (
        "Everything that must hold: linters, types, layers, and all tests on both databases; with"
        " other arguments pytest alone with them, such as `test tests/turns` or `test -k WORD`."
        " --quick: linters, the pure core and the domains' tests on SQLite, in about two minutes."
        " --thorough: 100,000 generated conversations through the context engine instead of the"
        " slice that every run takes. --mutations: break one law at a time on purpose, in a copy,"
        " of engine, services, budgets, live updates and access, and fail unless the tests notice"
        " at least 95 %. --chaos: kill 2,000 processes at random while people talk, embedded and"
        " scaled out, and fail unless nothing was lost, doubled or left hanging; a run of 1,000"
        " or more is stored with the others that tests/rig/README.md quotes."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments for the help; `run_from_argv` parses them itself."""
        parser.add_argument("--quick", action="store_true")
        parser.add_argument("--thorough", nargs="*", metavar=("COUNT", "FIRST"))
        parser.add_argument("--mutations", nargs="*", metavar="FILE")
        parser.add_argument("--chaos", nargs="*", metavar=("KILLS", "SEED"))
        parser.add_argument("pytest", nargs="*", metavar="PYTEST_ARGUMENT")

    def run_from_argv(self, argv: list[str]) -> None:
        """Pass the arguments on to pytest; Django's own parser would reject them."""
        match argv[2:]:
            case ["--help" | "-h"]:
                self.print_help(argv[0], argv[1])
            case []:
                sys.exit(self._run_all(SUITES, is_measured=True))
            case ["--quick"]:
                sys.exit(self._run_all(QUICK))
            case [word, *arguments] if word in LONG_RUNS:
                sys.exit(self._run_long(*LONG_RUNS[word], *arguments))
            case arguments:
                sys.exit(self._stream(*PYTHON, "pytest", SETTINGS, *arguments))

    def _run_long(self, module: str, tests: tuple[str, ...], *arguments: str) -> int:
        code = self._stream(*PYTHON, module, *arguments)
        if code or not tests or arguments:
            return code
        return self._stream(*PYTHON, "pytest", SETTINGS, "-q", *tests, AGENTWEB_TEST_THOROUGH="1")

    def _stream(self, *words: str, **environment: str) -> int:
        """Run a program in this terminal."""
        self.stdout.flush()
        env = os.environ | environment
        return subprocess.run(words, check=False, cwd=settings.BASE_DIR, env=env).returncode

    def _run_all(self, suites: tuple[Suite, ...], *, is_measured: bool = False) -> int:
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="agentweb-check-") as folder:
            data = Path(folder)
            failed = self._run_side_by_side(suites, data)
            counts = []
            for suite in suites:
                one = suite.read_counts(data)
                if suite.name in failed:
                    one = self._retry(suite, data)
                    if not one.failed:
                        failed.remove(suite.name)
                counts.append(one)
            if is_measured and not self._is_covered(data):
                failed.append("coverage")
        return self._close(add_counts(counts), failed, time.monotonic() - started)

    def _run_side_by_side(self, suites: tuple[Suite, ...], data: Path) -> list[str]:
        """Show each run when it has ended; return the names of those that failed."""
        names = {suite.name: suite for suite in suites}
        failed = []
        checks = [suite.make_check(data) for suite in suites]
        # Behind what waits and before what computes, so that no long one is left for the end.
        begun = sum(suite.waits for suite in suites)
        checks[begun:begun] = LINTERS
        for result in run_checks(checks, data):
            self._show(result, is_shown=result.name in names)
            if not result.is_good:
                failed.append(result.name)
            if result.name in names and (last := names[result.name].read_last_test(data)):
                self.stdout.write(f"It ended in the middle of {last}")
        return failed

    def _retry(self, suite: Suite, data: Path) -> Counts:
        result, counts = retry_failures(suite, data)
        if result is not None:
            self._show(result, is_shown=True)
        return counts

    def _is_covered(self, data: Path) -> bool:
        """Return whether the core is fully covered, every branch of it."""
        environment = {"COVERAGE_FILE": str(data / "coverage")}
        tool = (*PYTHON, "coverage")
        run_check(Check("combine", (*tool, "combine", "--quiet", str(data)), environment), data)
        report = (*tool, "report", f"--include={FULLY_COVERED}", "--fail-under=100")
        result = run_check(Check("coverage of the core 100 %", report, environment), data)
        self._show(result)
        return result.is_good

    def _show(self, result: Result, *, is_shown: bool = False) -> None:
        if is_shown or not result.is_good:
            self.stdout.write(result.output)
        mark = self.style.SUCCESS("ok    ") if result.is_good else self.style.ERROR("FAILED")
        self.stdout.write(f"{mark} {result.name:32} {result.seconds:6.1f} s")
        self.stdout.flush()

    def _close(self, counts: Counts, failed: list[str], seconds: float) -> int:
        """Write the closing lines and return the exit code."""
        if counts.retried:
            self.stdout.write(f"{len(counts.retried)} failed beside other tests, and passed alone:")
            self.stdout.write("".join(f"  {name}\n" for name in counts.retried), ending="")
            if os.environ.get("CI") == "true":
                failed = [*failed, "tests that needed a retry"]
        if failed:
            self.stdout.write(f"not good: {', '.join(failed)}")
        self.stdout.write(f"{seconds:.0f} s in all")
        # A failed run never ends with "0 failed", whatever the reason.
        total = max(counts.failed, len(failed))
        closing = f"{counts.passed} passed, {total} failed"
        closing += f", {counts.skipped} skipped" if counts.skipped else ""
        closing += f", {len(counts.retried)} retried" if counts.retried else ""
        self.stdout.write(closing)
        return 1 if total else 0
