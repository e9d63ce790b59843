"""A slice of the chaos: ten kills of each kind of installation, by fixed dice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rig.chaos import play

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("kind", ["embedded", "scaled"])
async def test_after_random_deaths_everything_is_as_it_was_said(kind: str, tmp_path: Path) -> None:
    report = await play(kind, 8, 10, tmp_path / "rig")
    assert report.is_clean, "\n".join((*report.wrong, str(report)))
    assert report.kills >= 10
    assert report.messages_acknowledged
