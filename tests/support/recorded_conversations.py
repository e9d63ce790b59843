"""Recorded conversations stored outside the project, since they quote other people's pages."""

from __future__ import annotations

import os
from pathlib import Path

_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"


def recorded_files(part: str) -> list[Path]:
    """Return the files of one part (`dev` or `long`); none without the recordings."""
    folder = Path(os.environ.get("AGENTWEB_TEST_RECORDED_DATA", _BESIDE)) / part
    return sorted(folder.glob("*.jsonl.gz"))
