"""Cursors of lists that are read in pages: time and key of the last row that was shown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WRITTEN = re.compile(r"([0-9]{1,17})-([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class Cursor:
    at: datetime
    id: int

    @classmethod
    def read(cls, text: str) -> Cursor | None:
        """Read a cursor from a URL; None for any other text."""
        match = _WRITTEN.fullmatch(text)
        if match is None:
            return None
        return cls(_EPOCH + timedelta(microseconds=int(match[1])), int(match[2]))


def format_cursor(at: datetime, id: int) -> str:
    """Write a cursor for a URL."""
    return f"{(at - _EPOCH) // timedelta(microseconds=1)}-{id}"
