"""Text that can be stored and sent everywhere: without lone surrogates and NUL."""

from __future__ import annotations

import re

UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Replace lone surrogates and NUL, which UTF-8 or PostgreSQL cannot hold, by U+FFFD."""
    return UNSTORABLE.sub("\ufffd", text)


def clean_value(value: object) -> object:
    """Clean every string of a JSON value; raises RecursionError for one that is too deep."""
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
    """Quote a piece of foreign text in a sentence: one line, bounded, marked when cut."""
    shown = repr(clean_text(text[:most]))
    return shown if len(text) <= most else f"{shown} (cut)"
