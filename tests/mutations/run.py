"""Makes mutations one at a time in a copy, and runs there the tests that should notice.

The copy for a mutation of the engine holds the engine and its tests alone: they need no Django, no
database and no network. That for any other is the whole project, with SQLite. A mutation is caught
when a test fails; one that nobody notices is a law that nobody tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.mutations.data import ENGINE, ENGINE_MUTATIONS, Mutation
from tests.mutations.services import SERVICE_MUTATIONS

ROOT = Path(__file__).resolve().parents[2]
MUTATIONS = ENGINE_MUTATIONS + SERVICE_MUTATIONS
#: Percent of the mutations that must be caught.
ENOUGH = 95
#: Stories that a mutated engine lives through, and seconds after which it hangs, which is noticed.
STORIES, SECONDS = "120", 300
_COPIED = (
    "conversations/__init__.py", ENGINE, "agentweb/__init__.py", "agentweb/emulator",
    "tools/__init__.py", "tools/html", "tests/context", "tests/data",
    "tests/support/small_files.py",
)  # fmt: skip
#: What is dear and seldom the first to notice comes last.
_LAST = ("test_golden.py", "test_laws.py", "test_shortened.py", "test_shorten.py", "test_wire.py")
#: What is compiled goes along, but for files that another process is about to rename.
_LEFT_OUT = shutil.ignore_patterns("*.pyc.*", ".git", ".venv", ".*_cache", "node_modules")
_OPTIONS = ("-q", "-x", "-p", "no:cacheprovider", "--rootdir=.")
_ENGINE_OPTIONS = (
    "--noconftest", "-p", "no:django", "-c", "pytest.ini", "--import-mode=importlib", "-k",
    "not met_everything",
)  # fmt: skip
_PROJECT_OPTIONS = ("--ds=tests.settings",)


def copy_engine(folder: Path) -> Path:
    """Copy the engine, what it needs, and its tests."""
    for name in _COPIED:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, ignore=_LEFT_OUT)
        else:
            shutil.copy2(ROOT / name, target)
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_mode = strict\n", encoding="ascii")
    return folder


def copy_project(folder: Path) -> Path:
    shutil.copytree(ROOT, folder, ignore=_LEFT_OUT)
    return folder


def find_failure(folder: Path, mutation: Mutation | None = None) -> str:
    """Run the tests of a copy; return the first failure, "" for none."""
    if mutation is not None and mutation.tests:
        return _run_tests(folder, _PROJECT_OPTIONS, mutation.tests)
    file = mutation.file if mutation else ""

    def order(test: Path) -> tuple[bool, bool, Path]:
        return test.name != f"test_{Path(file).name}", test.name in _LAST, test

    tests = sorted((folder / "tests/context").glob("test_*.py"), key=order)
    return _run_tests(folder, _ENGINE_OPTIONS, [str(test) for test in tests])


def _run_tests(folder: Path, options: Sequence[str], tests: Sequence[str]) -> str:
    run = [sys.executable, "-B", "-m", "pytest", *_OPTIONS, *options, *tests]
    env = os.environ | {"AGENTWEB_TEST_STORIES": STORIES, "PYTHONPATH": str(folder)}
    try:
        done = subprocess.run(
            run, check=False, cwd=folder, env=env, text=True, timeout=SECONDS,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "it hangs"
    if not done.returncode:
        return ""
    found = [
        line
        for line in done.stdout.splitlines()
        if line.startswith(("FAILED tests", "ERROR tests"))
    ]
    return found[0].split(" - ")[0] if found else done.stdout[-2_000:]


def try_mutation(mutation: Mutation, folder: Path) -> str:
    """Make a mutation in a copy, run the tests, and take it back; return the failure."""
    path = folder / mutation.path
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        return find_failure(folder, mutation)
    finally:
        path.write_text(text, encoding="utf-8")


def list_survivors(mutations: Sequence[Mutation]) -> list[Mutation]:
    """Return the mutations that nobody noticed, and print what became of each."""
    engine = [one for one in mutations if not one.tests]
    services = [one for one in mutations if one.tests]
    return _try_all(engine, copy_engine) + _try_all(services, copy_project)


def _try_all(mutations: Sequence[Mutation], copy: Callable[[Path], Path]) -> list[Mutation]:
    missed: list[Mutation] = []
    folders: SimpleQueue[Path] = SimpleQueue()
    workers = min(len(mutations), os.cpu_count() or 1)

    def try_in_a_copy(mutation: Mutation) -> str:
        folder = folders.get()
        try:
            return try_mutation(mutation, folder)
        finally:
            folders.put(folder)

    with tempfile.TemporaryDirectory(prefix="agentweb-mutations-") as base:
        for number in range(workers):
            folders.put(copy(Path(base) / str(number)))
        with ThreadPoolExecutor(max(1, workers)) as pool:
            for mutation, found in zip(mutations, pool.map(try_in_a_copy, mutations), strict=True):
                verdict = "caught  " if found else "SURVIVED"
                sys.stdout.write(f"{verdict} {mutation.file}: {mutation.law}  {found[:120]}\n")
                sys.stdout.flush()
                if not found:
                    missed.append(mutation)
    return missed


def find_broken_tests(mutations: Sequence[Mutation]) -> str:
    """Return the first failure of the tests without any mutation, "" for none."""
    with tempfile.TemporaryDirectory(prefix="agentweb-mutations-") as base:
        if any(not one.tests for one in mutations):
            found = find_failure(copy_engine(Path(base) / "engine"))
            if found:
                return found
        tests = dict.fromkeys(test for one in mutations for test in one.tests)
        if not tests:
            return ""
        return _run_tests(copy_project(Path(base) / "project"), _PROJECT_OPTIONS, list(tests))


def main(*files: str) -> int:
    """Make all mutations, or those of these files; 0 when enough of them are caught."""
    started = time.monotonic()
    chosen = [one for one in MUTATIONS if not files or one.file in files]
    unknown = sorted(set(files) - {one.file for one in MUTATIONS})
    if unknown:
        known = "\n  ".join(dict.fromkeys(one.file for one in MUTATIONS))
        sys.stdout.write(f"No mutation is made in {', '.join(unknown)}, but in\n  {known}\n")
        return 2
    broken = find_broken_tests(chosen)
    if broken:
        sys.stdout.write(f"the tests fail without any mutation: {broken}\n")
        return 1
    missed = list_survivors(chosen)
    caught = len(chosen) - len(missed)
    percent = 100 * caught // len(chosen)
    took = time.monotonic() - started
    sys.stdout.write(f"{caught} of {len(chosen)} mutations caught ({percent} %), {took:.0f} s\n")
    return 0 if percent >= ENOUGH else 1
