"""Runs of pytest: a few failures are looked at once more, alone, and named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conversations.management.suites import MOST_AGAIN, SUITES, Suite, counts, summed

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


def test_every_folder_of_tests_belongs_to_a_run() -> None:
    held = {one for suite in SUITES for one in suite.folders}
    (rest,) = [suite for suite in SUITES if not suite.folders]
    assert set(rest.without) <= held
