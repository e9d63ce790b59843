"""Rows in one form that both databases have: the form that is compared, and from which is written.

Numbers, flags and texts are themselves. A moment is text in UTC with microseconds, a day is text, a
UUID is its digits, JSON is its text with sorted keys (PostgreSQL keeps no order of keys), and bytes
are bytes. Search terms are not read: they are made again from their texts. What one database takes
and the other refuses, or would give back changed, is found here before anything is written.
"""

# ruff: noqa: S608 - the names are those of our own tables
from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from django.apps import apps
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from conversations.log.findings import DAMAGE, Problem, describe_error
from conversations.log.search_terms import split_terms
from conversations.models.fields import TermsField

_KINDS = {
    "number": (models.IntegerField,),
    "flag": (models.BooleanField,),
    "text": (models.CharField, models.TextField),
    "moment": (models.DateTimeField,),
    "day": (models.DateField,),
    "uuid": (models.UUIDField,),
    "json": (models.JSONField,),
    "bytes": (models.BinaryField,),
    "terms": (TermsField,),
}
_TYPES = {"number": int, "flag": bool, "bytes": bytes}
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_NO_FRACTION = ".000000"
_encode = json.JSONEncoder(ensure_ascii=False, default=bytes.hex).encode

Values = list[Any]


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    kind: str
    #: Most characters of a text, and the range of a number, on PostgreSQL.
    length: int | None
    span: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Table:
    """A table that is moved: its columns, the key first, without the search terms."""

    name: str
    columns: tuple[Column, ...]
    #: Whether the database numbers its rows.
    is_numbered: bool
    #: The column of search terms, which are made from the column `text`.
    terms: str = ""

    @property
    def key(self) -> Column:
        return self.columns[0]


def list_tables() -> list[Table]:
    """Return every table of the site but those of sessions and of applied migrations."""
    found = {
        model._meta.db_table: model
        for model in apps.get_models(include_auto_created=True)
        if model._meta.managed
        and not model._meta.proxy
        and not issubclass(model, AbstractBaseSession)
    }
    return [_describe_table(found[name]) for name in sorted(found)]


def _describe_table(model: type[models.Model]) -> Table:
    fields = sorted(model._meta.concrete_fields, key=lambda field: not field.primary_key)
    columns = [_describe_column(field) for field in fields]
    return Table(
        model._meta.db_table,
        tuple(column for column in columns if column.kind != "terms"),
        isinstance(model._meta.pk, models.AutoField | models.BigAutoField),
        next((column.name for column in columns if column.kind == "terms"), ""),
    )


def _describe_column(field: Any) -> Column:
    target = field
    while target.is_relation:
        target = target.target_field
    for kind, classes in _KINDS.items():
        if isinstance(target, classes):
            span = _find_span(target) if kind == "number" else None
            return Column(field.column, kind, getattr(target, "max_length", None), span)
    raise TypeError(f"{field} is of a kind that cannot be moved: {type(target).__name__}")


def _find_span(field: Any) -> tuple[int, int]:
    from django.db.backends.base.operations import BaseDatabaseOperations

    low, high = BaseDatabaseOperations.integer_field_ranges[field.get_internal_type()]
    return low, high


def write_select(table: Table, vendor: str) -> str:
    """Return the statement that reads the columns of all rows."""
    # Without the type of the column, for which Django reads what is no moment as nothing.
    names = [
        f'CAST("{column.name}" AS text)'
        if column.kind in {"moment", "day"} and vendor == "sqlite"
        else f'"{column.name}"'
        for column in table.columns
    ]
    return f'SELECT {", ".join(names)} FROM "{table.name}"'


def read_row(table: Table, vendor: str, row: Sequence[Any]) -> Values:
    """Return a row of a database in the common form."""
    readers = _READERS[vendor]
    return [
        value if value is None or (read := readers.get(column.kind)) is None else read(value)
        for column, value in zip(table.columns, row, strict=True)
    ]


def write_row(table: Table, database: BaseDatabaseWrapper, values: Values) -> Values:
    """Return a row of the common form as the database takes it, the search terms last."""
    writers = _WRITERS[database.vendor]
    found = [
        value if value is None or (write := writers.get(column.kind)) is None else write(value)
        for column, value in zip(table.columns, values, strict=True)
    ]
    if table.terms:
        text = values[[column.name for column in table.columns].index("text")]
        terms = tuple(term.text for term in split_terms(text))
        found.append(TermsField().get_db_prep_value(terms, database))
    return found


def write_line(values: Values) -> bytes:
    """Return the line of a row that digests are computed from."""
    return _encode(values).encode() + b"\n"


def find_problems(table: Table, vendor: str, row: Sequence[Any]) -> Iterator[Problem]:
    """Yield what PostgreSQL would refuse of a row of this database, or give back changed."""
    for column, value in zip(table.columns, row, strict=True):
        try:
            what = "" if value is None else _describe_problem(column, vendor, value)
        except DAMAGE as error:
            what = f"cannot be read: {describe_error(error)}"
        if what:
            yield Problem(table.name, str(row[0]), f"{column.name} {what}")


def _describe_problem(column: Column, vendor: str, value: Any) -> str:
    read = _READERS[vendor].get(column.kind)
    value = value if read is None else read(value)
    is_typed = isinstance(value, _TYPES.get(column.kind, str))
    if not is_typed:
        return f"is no {column.kind}"
    if column.span and not column.span[0] <= value <= column.span[1]:
        return "is a number that is too large"
    if column.kind == "json":
        return _describe_json_problem(value)
    if isinstance(value, str):
        value.encode()
        if "\0" in value:
            return f"has a NUL character, at {value.index(chr(0)):,}"
        if column.length and len(value) > column.length:
            return f"is longer than {column.length:,} characters"
    return ""


def _describe_json_problem(text: str) -> str:
    text.encode()
    if _NUL.search(text):
        return "has a NUL character"
    odd: list[str] = []
    json.loads(text, parse_float=odd.append, parse_constant=odd.append)
    changed = next((word for word in odd if not _is_kept(word)), None)
    return f"has the number {changed}" if changed else ""


def _is_kept(word: str) -> bool:
    """Return whether PostgreSQL gives a number with a fraction back as it is."""
    try:
        number = Decimal(word)
    except ArithmeticError:
        return False
    return number.is_finite() and "." in f"{number:f}" and not (number.is_zero() and word[0] == "-")


def _read_sqlite_day(value: str) -> str:
    return date.fromisoformat(value).isoformat()


def _read_sqlite_moment(value: str) -> str:
    return datetime.fromisoformat(value).isoformat(" ", "microseconds")


def _write_sqlite_moment(value: str) -> str:
    # As Django writes it, because SQLite compares the texts.
    return value.removesuffix(_NO_FRACTION)


def _read_postgresql_moment(value: Any) -> str:
    return str(value.astimezone(UTC).isoformat(" ", "microseconds"))[:26]


def _read_json(value: str) -> str:
    return json.dumps(json.loads(value), sort_keys=True, ensure_ascii=False)


_READERS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "sqlite": {
        "flag": bool,
        "moment": _read_sqlite_moment,
        "day": _read_sqlite_day,
        "json": _read_json,
        "bytes": bytes,
    },
    "postgresql": {
        "moment": _read_postgresql_moment,
        "day": date.isoformat,
        "uuid": lambda value: value.hex,
        "json": _read_json,
        "bytes": bytes,
    },
}
_WRITERS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "sqlite": {"moment": _write_sqlite_moment},
    "postgresql": {"moment": lambda value: value + "+00"},
}
