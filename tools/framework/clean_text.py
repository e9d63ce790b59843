"""Text that every store and wire takes: no lone surrogates, no NUL, never more than was allowed."""

from __future__ import annotations

import re

UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def clean(text: str) -> str:
    """Replace what neither UTF-8 nor PostgreSQL can hold by U+FFFD."""
    return UNSTORABLE.sub("\ufffd", text)


def clean_value(value: object) -> object:
    """Clean every string of a JSON value; what is too deep to walk is left for the schema."""
    match value:
        case str():
            return clean(value)
        case list():
            return [clean_value(item) for item in value]
        case dict():
            return {clean_value(key): clean_value(item) for key, item in value.items()}
        case _:
            return value


def clip(text: str, most: int) -> str:
    """Keep the first bytes of a text, say how many, and never cut a character."""
    whole = text.encode()
    if len(whole) <= most:
        return text
    notice = f"\n[output cut: {most:,} of {len(whole):,} bytes kept]"
    return whole[:most].decode(errors="ignore") + notice


def quote(text: str, most: int = 80) -> str:
    """Show a piece of someone's text inside a sentence: one line, bounded, marked when cut."""
    shown = repr(clean(text[:most]))
    return shown if len(text) <= most else f"{shown} (cut)"
