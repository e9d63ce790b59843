"""A separate database for measuring, of the configured kind; the user's data is not touched."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.db import connection

if TYPE_CHECKING:
    from conversations.models import User


@contextmanager
def use_empty_database() -> Iterator[None]:
    """Create an empty database, use it, and drop it at the end."""
    with tempfile.TemporaryDirectory(prefix="agentweb-bench-") as folder:
        if connection.vendor == "sqlite":
            # A file, as in production; threads do not share a database in memory.
            connection.settings_dict["TEST"]["NAME"] = str(Path(folder) / "bench.sqlite3")
        usual = str(connection.settings_dict["NAME"])
        connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
        try:
            yield
        finally:
            connection.creation.destroy_test_db(usual, verbosity=0)


def make_person(name: str) -> User:
    """Create a person without any data, who cannot log in."""
    return get_user_model().objects.create(username=name)


class Queries:
    """Counts the statements of this thread's connection inside `counting`."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        self.count += 1
        return execute(sql, params, many, context)

    @contextmanager
    def counting(self) -> Iterator[Queries]:
        with connection.execute_wrapper(self):
            yield self
