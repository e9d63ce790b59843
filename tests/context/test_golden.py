"""What was stored is rebuilt byte for byte, by this Python and by any other that is installed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.context.golden import FILE, different, main

ROOT = Path(__file__).parents[2]


def pythons() -> list[Path]:
    """Give this interpreter and those of other versions installed beside it."""
    beside = sorted(Path(sys.base_prefix).parent.glob("*/bin/python3.*"))
    own = {f"python3.{sys.version_info[1]}": Path(sys.executable)}
    found = {path.name: path for path in beside if _is_supported(path.name)}
    return list((found | own).values())


def _is_supported(name: str) -> bool:
    found = re.fullmatch(r"python3\.(\d+)", name)
    return found is not None and int(found[1]) >= 11


def test_every_stored_session_gives_the_requests_that_were_sent(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main() == 0
    assert int(capsys.readouterr().out.split()[0]) > 80


def test_the_stored_sessions_have_every_kind_of_entry() -> None:
    sessions = json.loads(FILE.read_text(encoding="ascii"))
    kinds = {entry[2] for session in sessions for entry in session["entries"]}
    assert kinds >= {
        "prompt", "answer", "results", "ingest", "compaction", "summary", "rounds", "trim",
        "shrink", "rebind", "restore", "clearing", "",
    }  # fmt: skip


def test_a_session_that_was_changed_does_not_pass() -> None:
    session = json.loads(FILE.read_text(encoding="ascii"))[0]
    session["entries"][0][3] = session["entries"][0][3].replace("x", "y", 1)
    assert different(session)


@pytest.mark.parametrize("python", pythons(), ids=str)
def test_any_python_rebuilds_the_same_requests(python: Path) -> None:
    done = subprocess.run(
        [python, "-B", "-m", "tests.context.golden"],
        check=False, cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 differ, Python 3." in done.stdout
