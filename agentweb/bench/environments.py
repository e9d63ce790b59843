"""Environments of their own for other people's programs, whose dependencies conflict with ours."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

#: Seconds for one step of an installation.
INSTALL_SECONDS = 600


def install_packages(packages: Sequence[str], place: Path) -> str:
    """Install the newest packages into a virtual environment; return the version of the first.

    An environment that is there is used again. Raises CalledProcessError or TimeoutExpired.
    """
    python = str(place / "bin/python")
    if not Path(python).exists():
        place.mkdir(parents=True, exist_ok=True)
        execute([sys.executable, "-m", "venv", str(place)], place).check_returncode()
    execute([python, "-m", "pip", "install", "-q", *packages], place).check_returncode()
    name = packages[0].partition("[")[0].partition(">")[0]
    program = f"import importlib.metadata as m; print(m.version({name!r}))"
    return execute([python, "-c", program], place).stdout.strip()


def execute(
    words: Sequence[str],
    place: Path,
    seconds: int = INSTALL_SECONDS,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command without input in a folder; what it prints is in the result."""
    return subprocess.run(
        words, cwd=place, env=env, timeout=seconds, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
