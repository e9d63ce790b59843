"""Runs of pytest: a few failures are looked at once more, alone, and named."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from agentweb.testing.suites import MOST_AGAIN, SUITES, Suite, counts, summed
from tests import conftest

GOOD = "tests/test_project.py::test_the_top_level_holds_only_what_is_allowed"
BAD = "tests/test_project.py::test_that_there_is_none"


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite("toys", ("tests/toys",))


def leave(suite: Suite, data: Path, *broken: str) -> None:
    row = {"passed": 7, "failed": len(broken), "error": 0, "skipped": 1, "broken": broken}
    suite.tally(data).write_text(json.dumps(row), encoding="ascii")


def test_what_passes_alone_is_named_and_counted_as_passed(suite: Suite, tmp_path: Path) -> None:
    leave(suite, tmp_path, GOOD)
    good, said = suite.again(tmp_path)
    assert good, said
    assert f"Failed beside others, passed alone: {GOOD}" in said
    assert summed([suite.tally(tmp_path)]) == (8, 0, 1)


def test_what_fails_alone_has_failed(suite: Suite, tmp_path: Path) -> None:
    leave(suite, tmp_path, GOOD, BAD)
    good, _ = suite.again(tmp_path)
    assert not good
    assert summed([suite.tally(tmp_path)]) == (7, 2, 1)


@pytest.mark.parametrize("broken", [(), (GOOD,) * (MOST_AGAIN + 1)])
def test_none_and_many_are_not_looked_at(
    suite: Suite, tmp_path: Path, broken: tuple[str, ...]
) -> None:
    leave(suite, tmp_path, *broken)
    assert suite.again(tmp_path) == (False, "")


def test_a_run_that_left_no_counts_has_failed(suite: Suite, tmp_path: Path) -> None:
    assert suite.again(tmp_path) == (False, "")
    assert summed([suite.tally(tmp_path)]) == (0, 1, 0)
    assert counts(suite.tally(tmp_path))["broken"] == []


def test_what_a_run_leaves_out_belongs_to_another() -> None:
    held = {one for suite in SUITES for one in suite.folders}
    assert [suite.name for suite in SUITES if not suite.folders] == ["all else on sqlite"]
    for suite in SUITES:
        assert set(suite.without) <= held


def test_what_asks_which_database_it_is_on_belongs_to_a_run_on_postgresql() -> None:
    root = Path(__file__).parents[2]
    held = {root / one for suite in SUITES for one in suite.folders if suite.database == "postgres"}
    asks = re.compile(
        r'^from tests.support.environment import DATABASE$|only_database\("postgres', re.MULTILINE
    )
    found = {one for one in (root / "tests").rglob("test_*.py") if asks.search(one.read_text())}
    assert len(found) > 5
    assert {one for one in found if not held & set(one.parents)} == set()


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
