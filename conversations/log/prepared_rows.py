"""Whole rows by hand-written SQL: what the ORM prepares for each statement is prepared once.

A turn runs the same few statements every time. The ORM takes several times as long to write one and
to make objects of its result as the database takes to run it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.models import Model

M = TypeVar("M", bound=Model)


class RowShape(Generic[M]):
    """The columns of a model's table, but for those `without`, and the way to its objects."""

    def __init__(self, model: type[M], without: tuple[str, ...]) -> None:
        self._model = model
        self._fields: list[Any] = [
            one for one in model._meta.concrete_fields if one.attname not in without
        ]
        self._names = [one.attname for one in self._fields]
        self._converters = [
            (at, one.cached_col, convert)
            for at, one in enumerate(self._fields)
            for convert in (
                *connection.ops.get_db_converters(one.cached_col),
                *one.get_db_converters(connection),
            )
        ]
        #: The number of columns.
        self.width = len(self._fields)

    def columns(self, table: str = "") -> str:
        """Write the columns for a statement that gives the table this name."""
        prefix = f"{table}." if table else ""
        return ", ".join(f'{prefix}"{one.column}"' for one in self._fields)

    def read(self, values: Sequence[Any]) -> M:
        """Make the object of a row of these columns."""
        found, own = list(values), connections[DEFAULT_DB_ALIAS]
        for at, column, convert in self._converters:
            found[at] = convert(found[at], column, own)
        return self._model.from_db(own.alias, self._names, found)

    def insert(self, row: M) -> None:
        """Insert a new row, and set its key if the database gives it."""
        if not row._state.adding:
            raise TypeError(f"{row} is stored already")
        # Each look at an attribute of `connection` looks for that of the thread.
        meta, own = self._model._meta, connections[DEFAULT_DB_ALIAS]
        fields = [one for one in self._fields if one is not meta.auto_field or row.pk is not None]
        values = [one.get_db_prep_save(one.pre_save(row, add=True), own) for one in fields]
        names = ", ".join(f'"{one.column}"' for one in fields)
        places = ", ".join(map(_write_place, fields, values))
        with own.cursor() as cursor:
            cursor.execute(
                f'INSERT INTO "{meta.db_table}" ({names}) VALUES ({places})'  # noqa: S608 - names
                f' RETURNING "{meta.pk.column}"',
                values,
            )
            row.pk = cursor.fetchone()[0]
        row._state.adding, row._state.db = False, own.alias


def _write_place(field: Any, value: Any) -> str:
    """Write the place of a value in a statement, as the ORM does."""
    write = getattr(field, "get_placeholder", None)
    return write(value, None, connection) if write is not None else "%s"


#: One for each model and what is left out of its rows.
_shapes: dict[tuple[type[Model], tuple[str, ...]], Any] = {}


def shape_of(model: type[M], *without: str) -> RowShape[M]:
    """Return the shape of a model's rows."""
    found: RowShape[M] | None = _shapes.get((model, without))
    if found is None:
        found = _shapes[model, without] = RowShape(model, without)
    return found


def read_rows(shape: RowShape[M], statement: str, values: Iterable[Any]) -> list[M]:
    """Run a statement that selects the columns of a shape, and return the objects."""
    with connection.cursor() as cursor:
        cursor.execute(statement, list(values))
        return [shape.read(row) for row in cursor.fetchall()]
