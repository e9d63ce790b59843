"""Reading rows that may be damaged: what cannot be read is a finding, never the end of the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from django.db import DatabaseError
from django.db.models import Model, QuerySet

from conversations.context.errors import ContextError

M = TypeVar("M", bound=Model)
T = TypeVar("T")
#: What a damaged row raises while it is read, decoded or applied.
DAMAGE = (
    DatabaseError,
    ContextError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
)
CHUNK = 200


def chunks(items: Sequence[T], size: int = CHUNK) -> Iterator[list[T]]:
    rest = iter(items)
    while found := list(islice(rest, size)):
        yield found


def read_rows(rows: QuerySet[M], keys: Sequence[Any]) -> dict[Any, M | Exception]:
    """Give the rows by their keys; one that cannot be read is its error."""
    try:
        return {row.pk: row for row in rows.filter(pk__in=keys)}
    except DAMAGE:
        return {key: row for key in keys if (row := _read_row(rows, key)) is not None}


def _read_row(rows: QuerySet[M], key: Any) -> M | Exception | None:
    try:
        return rows.filter(pk=key).first()
    except DAMAGE as error:
        return error


def words(error: Exception) -> str:
    """Say on one line what was wrong, without repeating the content it was found in."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:120]}"
