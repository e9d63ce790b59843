"""Rows of generated test matrices that run on only one of the two databases.

A matrix belongs here if its rows differ in what the database does not see: what the API sends,
which page is rendered, who requests it with the same query. One database runs all rows and the
other a slice of them, so that the common path runs on both. `manage.py test` alone leaves rows out
(tests/conftest.py); a file that is run on a database by hand runs all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

STRIDE = 4
ON_SQLITE = pytest.mark.one_database("sqlite")
ON_POSTGRES = pytest.mark.one_database("postgres")


def with_slice(rows: Iterable[Any], mark: pytest.MarkDecorator = ON_SQLITE) -> list[Any]:
    """Return the rows for one database, every fourth of them for both."""
    return [
        row if at % STRIDE == 0 else pytest.param(row, marks=mark) for at, row in enumerate(rows)
    ]
