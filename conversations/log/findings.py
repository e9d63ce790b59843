"""Read rows that may be damaged, and describe the problems that verification finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from django.db import DatabaseError, OperationalError, connection
from django.db.models import Model, QuerySet

from conversations.context.errors import ContextError

M = TypeVar("M", bound=Model)
T = TypeVar("T")
#: Errors that a damaged row raises while it is read, decoded or applied.
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
#: SQLite's message for a text that is not UTF-8, for which it raises OperationalError.
_UNDECODABLE = "Could not decode to UTF-8"


def split_chunks(items: Sequence[T], size: int = CHUNK) -> Iterator[list[T]]:
    rest = iter(items)
    while found := list(islice(rest, size)):
        yield found


def read_rows(rows: QuerySet[M], keys: Sequence[Any]) -> dict[Any, M | Exception]:
    """Return the rows by their keys; an unreadable row is the error it raised."""
    try:
        return {row.pk: row for row in rows.filter(pk__in=keys)}
    except DAMAGE:
        return {key: row for key in keys if (row := _read_row(rows, key)) is not None}


def _read_row(rows: QuerySet[M], key: Any) -> M | Exception | None:
    try:
        return rows.filter(pk=key).first()
    except DAMAGE as error:
        return error


def reraise_outage(error: Exception) -> None:
    """Raise an error that is the database's, not a row's: a lost connection, a timeout, a lock."""
    if isinstance(error, OperationalError) and _UNDECODABLE not in str(error):
        raise error


def read_leniently(read: Callable[[], T]) -> T:
    """Return what is read, for people: of a text that cannot be decoded, what can be.

    SQLite alone keeps such texts. Nothing read so is sent to a model or written back.
    """
    return _read_decoding(read, partial(str, encoding="utf-8", errors="replace"))


def read_decodable(read: Callable[[], T]) -> T:
    """Return what is read, for the model: a text that cannot be decoded is empty.

    So it is not content that can be sent, and a repair leaves it out.
    """
    return _read_decoding(read, _decode)


def iterate_decodable(rows: QuerySet[M], size: int) -> Iterator[M]:
    """Yield the rows in their order, `size` at a time, for the model like `read_decodable`."""
    for some in split_chunks(list(rows.values_list("pk", flat=True)), size):
        yield from read_decodable(partial(list, rows.filter(pk__in=some)))


def _decode(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return ""


def _read_decoding(read: Callable[[], T], decode: Callable[[bytes], str]) -> T:
    try:
        return read()
    except OperationalError as error:
        reraise_outage(error)
    own = connection.connection
    own.text_factory = decode
    try:
        return read()
    finally:
        own.text_factory = str


def describe_error(error: Exception) -> str:
    """Describe an error on one line without repeating the content it was raised for."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:120]}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One row that was changed or is missing; `conversation` is a public id or ""."""

    table: str
    id: str
    what: str
    conversation: str = ""

    def __str__(self) -> str:
        place = f"conversation {self.conversation}: " if self.conversation else ""
        return f"{place}{self.table} {self.id}: {self.what}"


@dataclass(slots=True)
class Tally:
    """The counts of one verification."""

    conversations: int = 0
    verified: int = 0
    mismatches: int = 0
    broken_chains: int = 0
    problems: int = 0
    #: Results of before bills, whose prices are not named.
    unnamed: int = 0

    @property
    def is_clean(self) -> bool:
        return self.problems == 0

    def __str__(self) -> str:
        chain = f"chain broken in {self.broken_chains}" if self.broken_chains else "chain intact"
        rest = "" if self.is_clean else f", {_count(self.problems, 'problem')}"
        checked = f"{_count(self.conversations, 'conversation')}, {_count(self.verified, 'call')}"
        odd = f"{self.mismatches} mismatch{'' if self.mismatches == 1 else 'es'}"
        old = f", prices not named by {_count(self.unnamed, 'result')}" if self.unnamed else ""
        return f"{checked} verified, {odd}, {chain}{old}{rest}"

    def data(self) -> dict[str, Any]:
        return asdict(self)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
