"""Cleaning the fields of a record: text, title, times, image data."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime
from typing import Any

from conversations.agent.thinking import EFFORTS
from conversations.context.tokens import images
from conversations.context.view import wire

MAX_TITLE = 200
EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)


#: Replaces an image that the API would refuse, with every later request too.
NO_IMAGE = "[An image was here that cannot be shown.]"
#: Base64 characters that cover the header of an image.
_HEAD = 64


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


def is_image(source: Any) -> bool:
    """Return whether image data, if there is any, is of the declared media type."""
    if not isinstance(source, dict) or source.get("type") != "base64":
        return True
    data = source.get("data")
    try:
        head = base64.b64decode(data[:_HEAD], validate=True) if isinstance(data, str) else b""
    except (binascii.Error, ValueError):
        return False
    return bool(head) and images.detect_media_type(head) == source.get("media_type")
