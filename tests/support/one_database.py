"""Rows of generated matrices that run on one of the two databases, where one is as good.

A matrix belongs here whose rows differ in what no database sees: what an API says, which page is
drawn, who asks for it behind one and the same query. One database then has all rows and the other
a slice of them, so that the way through it is shown on both. `manage.py test` alone leaves rows
out (tests/conftest.py); whoever runs a file on a database by hand has all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

STRIDE = 4
ON_SQLITE = pytest.mark.one_database("sqlite")
ON_POSTGRES = pytest.mark.one_database("postgres")


def with_slice(rows: Iterable[Any], mark: pytest.MarkDecorator = ON_SQLITE) -> list[Any]:
    """Give the rows for one database, every fourth of them for both."""
    return [
        row if at % STRIDE == 0 else pytest.param(row, marks=mark) for at, row in enumerate(rows)
    ]
