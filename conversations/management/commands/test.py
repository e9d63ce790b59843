"""Everything that must hold, as one command: style, types, layers, migrations, then the tests.

`manage.py test` runs it all, `manage.py test ARGUMENTS` only pytest with these. The suite runs on
SQLite; what touches the database runs again on a real PostgreSQL that it starts itself. Two runs
are used, against two connections in one run, because Django has one default connection and the
code under test uses it. The core's own tests are a run of their own, because only they are
measured for coverage, which takes longer than most of what it watches. The last line sums up.

Two runs are too long for every day. `--thorough [COUNT] [FIRST]` lives 100,000 generated
conversations, and shortens texts at every limit, where the suite takes a slice. `--mutations
[FILE...]` breaks the context engine on purpose and fails unless its tests notice.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from django.conf import settings
from django.core.management.base import BaseCommand

from conversations.management.locks import complaints

OF_THE_CORE = ("tests/context", "tests/runner")
ON_BOTH_DATABASES = ("tests/services", "tests/turns", "tests/web", "tests/faults")
WHOLLY_COVERED = "conversations/context/*,conversations/runner.py"
#: The programs of a run: pytest, and pytest watched for what it covers.
PLAIN, MEASURED = ("pytest",), ("coverage", "run", "--parallel-mode", "-m", "pytest")
PRODUCTION = {
    "AGENTWEB_HTTPS": "true",
    "AGENTWEB_HOSTS": "chat.example.org",
    "SECRET_KEY": "long, random and only for this check: 7Hq2-vX9z_Lm4sTb8RcWd1KpYf6",
}
_PYTHON = (sys.executable, "-m")
_SETTINGS = "--ds=tests.settings"
#: Runs of their own: the module that is run, and tests that then do all instead of a slice.
LONG_RUNS: dict[str, tuple[str, tuple[str, ...]]] = {
    "--thorough": ("tests.context.thorough", ("tests/context/test_shortened.py",)),
    "--mutations": ("tests.mutations", ()),
}
_LINT = str(Path(sys.executable).with_name("lint-imports"))


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    run: Callable[[Path], tuple[bool, str]]


def command(*words: str, **environment: str) -> Callable[[Path], tuple[bool, str]]:
    """Make a check of a command that succeeds or says why not."""

    def run(data: Path) -> tuple[bool, str]:
        env = os.environ | {"AGENTWEB_DATA_DIR": str(data)} | environment
        done = subprocess.run(
            words, check=False, cwd=settings.BASE_DIR, env=env, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return done.returncode == 0, done.stdout

    return run


def locks(_: Path) -> tuple[bool, str]:
    found = complaints(settings.BASE_DIR)
    return not found, "\n".join(found)


_MANAGE = (sys.executable, "manage.py")
CHECKS = (
    Check("mypy", command(*_PYTHON, "mypy")),
    Check("ruff check", command(*_PYTHON, "ruff", "check", "--quiet", ".")),
    Check("ruff format", command(*_PYTHON, "ruff", "format", "--check", ".")),
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
                "--mutations [FILE...] breaks the engine on purpose."
            )
            return
        if argv[2:3] and argv[2] in LONG_RUNS:
            sys.exit(self._long_run(*LONG_RUNS[argv[2]], *argv[3:]))
        sys.exit(self._pytest(*argv[2:]) if argv[2:] else self._everything())

    def _long_run(self, module: str, tests: tuple[str, ...], *arguments: str) -> int:
        code = self._stream(*_PYTHON, module, *arguments)
        if code or not tests or arguments:
            return code
        return self._stream(*_PYTHON, "pytest", _SETTINGS, "-q", *tests, AGENTWEB_TEST_THOROUGH="1")

    def _everything(self) -> int:
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="agentweb-check-") as folder:
            data = Path(folder)
            broken = self._checks(data)
            tallies = [data / f"{name}.json" for name in ("core", "sqlite", "postgres")]
            broken += self._suites(data, tallies)
            broken += self._coverage(data)
            passed, failed, skipped = summed(tallies)
        if broken:
            self.stdout.write(f"not good: {', '.join(broken)}")
        self.stdout.write(f"{time.monotonic() - started:.0f} s in all")
        # A run that is not good never closes on "0 failed", whatever it was that failed.
        failed = max(failed, len(broken))
        closing = f"{passed} passed, {failed} failed"
        self.stdout.write(f"{closing}, {skipped} skipped" if skipped else closing)
        return 1 if failed else 0

    def _checks(self, data: Path) -> list[str]:
        def timed(check: Check) -> tuple[bool, str, float]:
            started = time.monotonic()
            return (*check.run(data), time.monotonic() - started)

        broken = []
        with ThreadPoolExecutor(max_workers=2) as pool:
            for check, (good, output, took) in zip(CHECKS, pool.map(timed, CHECKS), strict=True):
                self._line(check.name, good, took)
                if not good:
                    self.stdout.write(output)
                    broken.append(check.name)
        return broken

    def _suites(self, data: Path, tallies: list[Path]) -> list[str]:
        """Run the tests on both databases side by side; the second is shown when both are done."""
        words = data / "postgres.txt"
        core, sqlite, postgres = tallies
        both = _present(ON_BOTH_DATABASES)
        others = [f"--ignore={folder}" for folder in _present(OF_THE_CORE)]
        with words.open("w+", encoding="utf-8") as told, ThreadPoolExecutor(1) as pool:
            other = pool.submit(self._suite, PLAIN, "postgres", data, postgres, told, *both)
            broken = self._ended(
                "core", self._suite(MEASURED, "sqlite", data, core, None, *_present(OF_THE_CORE))
            )
            broken += self._ended(
                "sqlite", self._suite(PLAIN, "sqlite", data, sqlite, None, *others)
            )
            outcome = other.result()
        self.stdout.write(words.read_text(encoding="utf-8", errors="replace"))
        return broken + self._ended("postgres", outcome)

    def _ended(self, name: str, outcome: tuple[int, float]) -> list[str]:
        code, took = outcome
        name = f"tests of the {name}" if name == "core" else f"tests on {name}"
        self._line(name, code == 0, took)
        return [name] if code else []

    def _suite(
        self,
        program: tuple[str, ...],
        database: str,
        data: Path,
        tally: Path,
        told: IO[str] | None,
        *paths: str,
    ) -> tuple[int, float]:
        """Run pytest on one database; give its exit code and seconds."""
        environment = {
            "AGENTWEB_TEST_DATABASE": database,
            "AGENTWEB_TEST_TALLY": str(tally),
            "COVERAGE_FILE": str(data / "coverage"),
        }
        started = time.monotonic()
        run = (*_PYTHON, *program, _SETTINGS, "-q", "--durations=12", *paths)
        code = self._stream(*run, told=told, **environment)
        return code, time.monotonic() - started

    def _pytest(self, *arguments: str) -> int:
        return self._stream(*_PYTHON, "pytest", _SETTINGS, *arguments)

    def _coverage(self, data: Path) -> list[str]:
        """Hold the core to being covered whole, every branch of it."""
        environment = {"COVERAGE_FILE": str(data / "coverage")}
        tool = (*_PYTHON, "coverage")
        command(*tool, "combine", "--quiet", str(data), **environment)(data)
        core = ("report", f"--include={WHOLLY_COVERED}", "--fail-under=100")
        good, report = command(*tool, *core, **environment)(data)
        self._line("coverage of the core 100 %", good, None)
        if not good:
            self.stdout.write(report)
        return [] if good else ["coverage"]

    def _stream(self, *words: str, told: IO[str] | None = None, **environment: str) -> int:
        """Run a program; what it says goes to the terminal or to `told`."""
        self.stdout.flush()
        done = subprocess.run(
            words, check=False, cwd=settings.BASE_DIR, env=os.environ | environment,
            stdout=told, stderr=subprocess.STDOUT if told else None,
        )  # fmt: skip
        return done.returncode

    def _line(self, name: str, good: bool, took: float | None) -> None:
        mark = self.style.SUCCESS("ok    ") if good else self.style.ERROR("FAILED")
        self.stdout.write(f"{mark} {name:32}" + (f" {took:6.1f} s" if took is not None else ""))
        self.stdout.flush()


def _present(folders: tuple[str, ...]) -> list[str]:
    return [folder for folder in folders if (settings.BASE_DIR / folder).is_dir()]


def summed(tallies: list[Path]) -> tuple[int, int, int]:
    """Add up the runs; one that left no counts did not end, which is a failure."""
    passed = failed = skipped = 0
    for tally in tallies:
        lost = {"passed": 0, "failed": 1, "error": 0, "skipped": 0}
        counts = json.loads(tally.read_text(encoding="ascii")) if tally.exists() else lost
        passed += counts["passed"]
        failed += counts["failed"] + counts["error"]
        skipped += counts["skipped"]
    return passed, failed, skipped
