"""An empty database of the configured kind, for a while; the site's data is not touched."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import connection


@contextmanager
def use_empty_database() -> Iterator[None]:
    """Create an empty database, use it, and drop it at the end."""
    with tempfile.TemporaryDirectory(prefix="agentweb-scratch-") as folder:
        if connection.vendor == "sqlite":
            # A file, as in production; threads do not share a database in memory.
            connection.settings_dict["TEST"]["NAME"] = str(Path(folder) / "scratch.sqlite3")
        usual = str(connection.settings_dict["NAME"])
        connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
        try:
            yield
        finally:
            connection.creation.destroy_test_db(usual, verbosity=0)
