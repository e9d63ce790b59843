"""Cleaning the fields of a record: text, title, effort, times."""

from __future__ import annotations

from datetime import UTC, datetime

from conversations.agent.thinking import EFFORTS
from conversations.context.view import wire

MAX_TITLE = 200
EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)


def clean_text(text: str) -> str:
    """Return text that every database accepts: no NUL, no lone surrogates."""
    return wire.clean(text.replace("\0", ""))


def clean_title(value: object) -> str:
    return " ".join(clean_text(value).split())[:MAX_TITLE] if isinstance(value, str) else ""


def clean_effort(value: object) -> str:
    """Return a level of effort; "" for an unknown one, as in records of other programs."""
    return value if isinstance(value, str) and value in EFFORTS else ""


def parse_time(value: object) -> datetime | None:
    """Parse a time; None for malformed times and times in the future."""
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    if at is None:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return at if EARLIEST <= at <= datetime.now(UTC) else None
