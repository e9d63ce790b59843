"""Rows of an answer, a page at a time: from where the last page ended, which a cursor names.

Rows come in the order in which they were written, so a cursor stays good: what is new comes after.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from django.db.models import Q, QuerySet

Record = dict[str, Any]
#: Rows of a page: at most, and where nobody says otherwise. Of a thousand SQLite does not find the
#: related rows any more.
MOST_ROWS, USUAL_ROWS = 500, 100


class MalformedCursor(ValueError):
    code = "malformed_cursor"


class Rows(Protocol):
    def read_page(self, cursor: str, count: int) -> tuple[list[Record], str]:
        """Return rows after a cursor ("": the first), and the cursor of the next ("": none)."""
        ...


@dataclass(frozen=True, slots=True)
class AllRows:
    """Rows that fit one page."""

    records: list[Record]

    def read_page(self, cursor: str, count: int) -> tuple[list[Record], str]:
        if cursor:
            raise MalformedCursor(cursor)
        return self.records, ""


@dataclass(frozen=True, slots=True)
class KeyRows:
    """Rows of a table in the order of their keys, or of a moment with an index and the key."""

    query: QuerySet[Any]
    describe: Callable[[Any], Record]
    moment: str = ""

    def read_page(self, cursor: str, count: int) -> tuple[list[Record], str]:
        order = [self.moment, "pk"] if self.moment else ["pk"]
        rows = self.query.order_by(*order)
        if cursor:
            rows = rows.filter(self._lies_after(cursor))
        found = list(rows[: count + 1])
        next_cursor = self._name(found[count - 1]) if len(found) > count else ""
        return [self.describe(row) for row in found[:count]], next_cursor

    def _name(self, row: Any) -> str:
        at = getattr(row, self.moment).isoformat() if self.moment else ""
        return urlsafe_b64encode(f"{at}~{row.pk}".encode()).decode().rstrip("=")

    def _lies_after(self, cursor: str) -> Q:
        try:
            text = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
            at, _, key = text.partition("~")
            if not (key.isascii() and key.isdecimal() and len(key) < 19):
                raise MalformedCursor(cursor)
            if not self.moment:
                return Q(pk__gt=int(key))
            moment = datetime.fromisoformat(at)
        except ValueError as error:
            raise MalformedCursor(cursor) from error
        if moment.tzinfo is None or not 1970 <= moment.year <= 9000:
            raise MalformedCursor(cursor)
        later = Q(**{f"{self.moment}__gt": moment}) | Q(pk__gt=int(key))
        # The first condition alone is one of the index.
        return Q(**{f"{self.moment}__gte": moment}) & later


def iterate_records(rows: Rows) -> Iterator[Record]:
    """Yield all rows, a page in memory at a time."""
    cursor = ""
    while True:
        found, cursor = rows.read_page(cursor, MOST_ROWS)
        yield from found
        if not cursor:
            return
