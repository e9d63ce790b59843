"""What a measure does on a database of its own: make people, count statements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.db import connection

if TYPE_CHECKING:
    from conversations.models import User


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
