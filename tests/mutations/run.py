"""Makes mutations one at a time in a copy of the engine and runs the engine's tests there.

The copy holds the engine and its tests alone: they need no Django, no database and no network. A
mutation is caught when a test fails; one that nobody notices is a law that nobody tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.mutations.data import ENGINE, MUTATIONS, Mutation

ROOT = Path(__file__).resolve().parents[2]
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
_OPTIONS = (
    "-q", "-x", "--noconftest", "-p", "no:django", "-p", "no:cacheprovider", "-c", "pytest.ini",
    "--rootdir=.", "--import-mode=importlib", "-k", "not met_everything",
)  # fmt: skip


def copied(folder: Path) -> Path:
    """Copy what is tested, and its tests."""
    for name in _COPIED:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(ROOT / name, target)
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_mode = strict\n", encoding="ascii")
    return folder


def failure(folder: Path, file: str = "") -> str:
    """Run the tests of a copy, those of this file first; give the first failure, "" for none."""

    def order(test: Path) -> tuple[bool, bool, Path]:
        return test.name != f"test_{Path(file).name}", test.name in _LAST, test

    tests = sorted((folder / "tests/context").glob("test_*.py"), key=order)
    run = [sys.executable, "-B", "-m", "pytest", *_OPTIONS, *(str(test) for test in tests)]
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
    found = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return found[0].split(" - ")[0] if found else done.stdout[-2_000:]


def noticed(mutation: Mutation, folder: Path) -> str:
    """Make a mutation in a copy, run the tests, and take it back."""
    path = folder / mutation.path
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        return failure(folder, mutation.file)
    finally:
        path.write_text(text, encoding="utf-8")


def survivors(mutations: Sequence[Mutation]) -> list[Mutation]:
    """Give the mutations that nobody noticed, saying of each what became of it."""
    missed: list[Mutation] = []
    folders: SimpleQueue[Path] = SimpleQueue()
    workers = min(len(mutations), os.cpu_count() or 1)

    def tried(mutation: Mutation) -> str:
        folder = folders.get()
        try:
            return noticed(mutation, folder)
        finally:
            folders.put(folder)

    with tempfile.TemporaryDirectory(prefix="agentweb-mutations-") as base:
        for number in range(workers):
            folders.put(copied(Path(base) / str(number)))
        with ThreadPoolExecutor(workers) as pool:
            for mutation, found in zip(mutations, pool.map(tried, mutations), strict=True):
                verdict = "caught  " if found else "SURVIVED"
                sys.stdout.write(f"{verdict} {mutation.file}: {mutation.law}  {found[:120]}\n")
                sys.stdout.flush()
                if not found:
                    missed.append(mutation)
    return missed


def main(*files: str) -> int:
    """Make all mutations, or those of these files; 0 when enough of them are caught."""
    started = time.monotonic()
    chosen = [one for one in MUTATIONS if not files or one.file in files]
    with tempfile.TemporaryDirectory(prefix="agentweb-mutations-") as base:
        broken = failure(copied(Path(base) / "unchanged"))
    if broken:
        sys.stdout.write(f"the tests fail without any mutation: {broken}\n")
        return 1
    missed = survivors(chosen)
    caught = len(chosen) - len(missed)
    percent = 100 * caught // max(1, len(chosen))
    took = time.monotonic() - started
    sys.stdout.write(f"{caught} of {len(chosen)} mutations caught ({percent} %), {took:.0f} s\n")
    return 0 if percent >= ENOUGH else 1
