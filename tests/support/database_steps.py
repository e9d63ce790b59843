"""Counts the work of SQLite, which no machine changes."""

from __future__ import annotations

from collections.abc import Callable

from django.db import connection


def count_steps(work: Callable[[], object]) -> int:
    """Return the instructions that SQLite runs, most of them for each row that it reads."""
    steps: list[None] = []
    own = connection.connection
    own.set_progress_handler(lambda: steps.append(None), 1)
    try:
        work()
    finally:
        own.set_progress_handler(None, 1)
    return len(steps)
