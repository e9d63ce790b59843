"""Commands of a site, each in a process of its own that has the libraries and need not import."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.rig.forking import base


def run_forked(env: Mapping[str, str], *arguments: str) -> tuple[int, str]:
    """Run a command of manage.py; return its exit code and what it said."""
    return _start("run_command", env, arguments=arguments)


def execute_forked(env: Mapping[str, str], lines: str) -> str:
    """Execute lines of Python where Django is set up, and return what they printed."""
    code, said = _start("execute_lines", env, lines=lines)
    assert code == 0, said
    return said


def _start(function: str, env: Mapping[str, str], **arguments: Any) -> tuple[int, str]:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        process = base().start(
            function, f"tests.support.site_commands:{function}", log, environment=env, **arguments
        )
        return process.wait(300), log.read_text(encoding="utf-8")
