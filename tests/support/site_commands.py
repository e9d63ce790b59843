"""What a process runs that was forked before Django was set up (tests/rig/forking.py)."""

from __future__ import annotations

from collections.abc import Sequence


def run_command(arguments: Sequence[str]) -> None:
    """Run a command as `manage.py` does."""
    from django.core.management import execute_from_command_line

    execute_from_command_line(["manage.py", *arguments])


def execute_lines(lines: str) -> None:
    """Execute lines of Python with Django set up."""
    import django

    django.setup()
    exec(lines, {"__name__": "lines"})
