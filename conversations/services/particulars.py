"""What a record says about itself besides its messages, taken over where it can be true."""

from __future__ import annotations

from datetime import UTC, datetime

from conversations.context import wire

MAX_TITLE = 200
EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)


def plain(text: str) -> str:
    """Give text that every database takes: no NUL, no lone surrogate."""
    return wire.clean(text.replace("\0", ""))


def title(value: object) -> str:
    return " ".join(plain(value).split())[:MAX_TITLE] if isinstance(value, str) else ""


def time(value: object) -> datetime | None:
    """Read a time; one that is none, or of the future, is left out."""
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    if at is None:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return at if EARLIEST <= at <= datetime.now(UTC) else None
