"""Runs of pytest: which test belongs to which, and what becomes of a few failures."""

from __future__ import annotations

import json
import os
import re
import sys
from io import StringIO
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from agentweb.management.commands import test
from agentweb.testing.parallel_commands import Check, run_check
from agentweb.testing.suites import (
    MOST_RETRIED,
    QUICK,
    STORIES,
    SUITES,
    Counts,
    Suite,
    add_counts,
    retry_failures,
)
from tests import conftest

GOOD = "tests/test_project.py::test_the_top_level_holds_only_what_is_allowed"
BAD = "tests/test_project.py::test_that_there_is_none"


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite("toys", ("tests/toys",))


def leave(suite: Suite, data: Path, *broken: str) -> None:
    row = {"passed": 7, "failed": len(broken), "error": 0, "skipped": 1, "broken": broken}
    suite.tally_file(data).write_text(json.dumps(row), encoding="ascii")


def test_a_test_that_passes_alone_is_counted_as_passed_and_named_as_retried(
    suite: Suite, tmp_path: Path
) -> None:
    leave(suite, tmp_path, GOOD)
    result, counts = retry_failures(suite, tmp_path)
    assert result is not None
    assert result.is_good, result.output
    assert counts == Counts(passed=8, skipped=1, retried=(GOOD,))


def test_a_test_that_fails_alone_has_failed(suite: Suite, tmp_path: Path) -> None:
    leave(suite, tmp_path, GOOD, BAD)
    result, counts = retry_failures(suite, tmp_path)
    assert result is not None
    assert not result.is_good
    assert counts == Counts(passed=7, failed=2, skipped=1, broken=(GOOD, BAD))


@pytest.mark.parametrize("broken", [(), (GOOD,) * (MOST_RETRIED + 1)])
def test_none_and_many_are_not_retried(
    suite: Suite, tmp_path: Path, broken: tuple[str, ...]
) -> None:
    leave(suite, tmp_path, *broken)
    first = suite.read_counts(tmp_path)
    assert retry_failures(suite, tmp_path) == (None, first)


def test_a_run_that_left_no_counts_has_failed(suite: Suite, tmp_path: Path) -> None:
    suite.tally_file(tmp_path).with_suffix(".at").write_text(GOOD)
    assert retry_failures(suite, tmp_path) == (None, Counts(failed=1))
    assert suite.read_last_test(tmp_path) == GOOD
    leave(suite, tmp_path)
    assert suite.read_last_test(tmp_path) == ""


def test_counts_of_runs_are_added_up() -> None:
    one = Counts(5, 1, 2, ("a",), ("b",))
    assert add_counts([one, Counts(1, retried=("c",))]) == Counts(6, 1, 2, ("a",), ("b", "c"))


@pytest.mark.parametrize(
    ("is_ci", "counts", "failed", "code", "closing"),
    [
        (True, Counts(8), [], 0, "8 passed, 0 failed"),
        (True, Counts(8, skipped=2), [], 0, "8 passed, 0 failed, 2 skipped"),
        (False, Counts(8, retried=(GOOD,)), [], 0, "8 passed, 0 failed, 1 retried"),
        (True, Counts(8, retried=(GOOD,)), [], 1, "8 passed, 1 failed, 1 retried"),
        (True, Counts(8), ["mypy"], 1, "8 passed, 1 failed"),
        (False, Counts(8, 3, broken=(BAD,) * 3), ["toys"], 1, "8 passed, 3 failed"),
    ],
)
def test_what_a_run_closes_with(
    monkeypatch: pytest.MonkeyPatch, is_ci: bool, counts: Counts, failed: list[str], code: int,
    closing: str,
) -> None:  # fmt: skip
    """A retry is counted and listed; CI fails when a test needed it."""
    monkeypatch.setenv("CI", "true" if is_ci else "")
    out = StringIO()
    assert test.Command(stdout=out)._close(counts, failed, 61.2) == code
    lines = out.getvalue().splitlines()
    assert lines[-1] == closing
    assert (f"  {GOOD}" in lines) == bool(counts.retried)


def test_what_a_run_leaves_out_belongs_to_another() -> None:
    held = {one for suite in SUITES for one in suite.folders}
    assert [suite.name for suite in SUITES if not suite.folders] == ["all else on sqlite"]
    for suite in SUITES:
        assert set(suite.without) <= held


def test_no_test_belongs_to_two_runs_on_sqlite() -> None:
    rest = next(suite for suite in SUITES if not suite.folders)
    held = [one for suite in SUITES if suite.database == "sqlite" for one in suite.folders]
    assert len(held) == len(set(held))
    assert set(held) - set(rest.without) == set(STORIES)


def test_what_waits_begins_first_and_goes_before_what_computes(tmp_path: Path) -> None:
    order = [suite.waits for suite in SUITES]
    assert order == sorted(order, reverse=True)
    assert 0 < sum(order) < len(order)
    words = (sys.executable, "-c", "import os; print(os.nice(0))")
    waiting, computing = (
        int(run_check(Check("niceness", words, waits=waits), tmp_path).output)
        for waits in (True, False)
    )
    assert waiting == os.nice(0)
    assert waiting < computing or waiting == 19


def test_the_quick_subset_is_of_the_folders_of_the_whole() -> None:
    held = {one for suite in SUITES for one in suite.folders}
    assert {one for suite in QUICK for one in suite.folders} <= held


def test_what_asks_which_database_it_is_on_belongs_to_a_run_on_postgresql() -> None:
    root = Path(__file__).parents[2]
    held = {root / one for suite in SUITES for one in suite.folders if suite.database == "postgres"}
    asks = re.compile(
        r'^from tests.support.environment import DATABASE$|only_database\("postgres', re.MULTILINE
    )
    found = {one for one in (root / "tests").rglob("test_*.py") if asks.search(one.read_text())}
    assert len(found) > 5
    assert {one for one in found if not held & set(one.parents)} == set()


def test_what_uses_the_database_in_a_package_of_the_app_belongs_to_a_run_on_postgresql() -> None:
    root = Path(__file__).parents[2]
    held = {one for suite in SUITES for one in suite.folders if suite.database == "postgres"}
    uses = re.compile(r"\bdjango_db\b|\b(transactional_)?db: None|usefixtures\(.*\bdb\b")
    found = {
        f"tests/{folder.name}"
        for folder in (root / "tests").iterdir()
        if (root / "conversations" / folder.name).is_dir()
        and any(uses.search(one.read_text()) for one in folder.rglob("*.py"))
    }
    assert len(found) > 15
    assert found <= held


def item(module: ModuleType | None = None, *marks: pytest.Mark, uses: str = "") -> Any:
    named = {one.name: one for one in marks}
    return SimpleNamespace(
        nodeid="a", module=module, fixturenames=[uses], get_closest_marker=named.get
    )


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
@pytest.mark.parametrize("only", ["", "sqlite", "database"])
def test_a_test_is_of_the_runs_on_its_databases(
    monkeypatch: pytest.MonkeyPatch, database: str, only: str
) -> None:
    monkeypatch.setenv("AGENTWEB_TEST_ONLY", only)
    monkeypatch.setattr(conftest, "DATABASE", database)
    asking = ModuleType("asking")
    asking.DATABASE = database  # type: ignore[attr-defined]
    is_alone = only == "database"
    for share in (1, 10**12):
        monkeypatch.setattr(conftest, "SHARE", share)
        is_all = share == 1
        for name in ("sqlite", "postgres"):
            mark = pytest.mark.only_database(name, "a reason").mark
            assert conftest.is_wanted(item(None, mark)) == (name == database or not only)
        assert conftest.is_wanted(item()) == (not is_alone)
        assert conftest.is_wanted(item(asking)) == is_all
        assert conftest.is_wanted(item(uses="db")) == is_all
        row = item(None, pytest.mark.one_database("postgres").mark, uses="db")
        assert conftest.is_wanted(row) == (database == "postgres" if only else is_all)
