"""Text that every store and wire takes: no lone surrogates, no NUL, never more than was allowed."""

from __future__ import annotations

import re

UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Replace what neither UTF-8 nor PostgreSQL can hold by U+FFFD."""
    return UNSTORABLE.sub("\ufffd", text)


def clean_value(value: object) -> object:
    """Clean every string of a JSON value; what is too deep to walk is left for the schema."""
    match value:
        case str():
            return clean_text(value)
        case list():
            return [clean_value(item) for item in value]
        case dict():
            return {clean_value(key): clean_value(item) for key, item in value.items()}
        case _:
            return value


def quote(text: str, most: int = 80) -> str:
    """Show a piece of someone's text inside a sentence: one line, bounded, marked when cut."""
    shown = repr(clean_text(text[:most]))
    return shown if len(text) <= most else f"{shown} (cut)"
