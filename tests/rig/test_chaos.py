"""A short chaos run: ten kills of each kind of installation, with fixed seeds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentweb.marked_text import read_marked
from tests.rig.chaos import play
from tests.rig.report import ENOUGH, MARKS, README, keep, kept, render


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", ["embedded", "scaled"])
async def test_after_random_deaths_everything_is_as_it_was_said(kind: str, tmp_path: Path) -> None:
    report = await play(kind, 8, 10, tmp_path / "rig")
    assert report.is_clean, "\n".join((*report.wrong, str(report)))
    assert report.kills >= 10
    assert report.messages_acknowledged


def test_the_readme_says_what_the_stored_runs_found_and_they_found_nothing_wrong() -> None:
    runs = kept()
    assert runs
    assert read_marked(README, MARKS) == render(runs)
    for run in runs:
        assert run["is_clean"]
        assert run["kills"] >= ENOUGH


def test_long_runs_of_both_modes_are_stored_and_quoted_together(tmp_path: Path) -> None:
    long = kept()[0]
    file, readme = tmp_path / "results" / "chaos.json", tmp_path / "README.md"
    readme.write_text(words := f"# Chaos\n<!-- {MARKS} -->\nof old\n<!-- /{MARKS} -->\n")
    one, other = long["modes"]
    for short in (
        long | {"kills": ENOUGH - 1},
        long | {"modes": [one]},
        long | {"modes": [one, other | {"kills": 0}]},
    ):
        assert not keep(short, file, readme)
    assert not file.exists()
    assert readme.read_text() == words
    assert keep(long, file, readme)
    assert keep(long | {"seed": 12_345}, file, readme)
    assert json.loads(file.read_text()) == [long, long | {"seed": 12_345}]
    assert render(kept(file)) in readme.read_text()
    assert f"killed {2 * long['kills']:,} processes" in readme.read_text()
    assert f"seeds {long['seed']}, 12345" in readme.read_text()
