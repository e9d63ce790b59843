"""Ranges of the lines of a text, with a note of the position and how to continue."""

from __future__ import annotations

import re

from tools.framework.clean_text import quote
from tools.framework.errors import InputError

MOST_CHARACTERS = 40_000
LINE = re.compile(r"[^\n]*\n|[^\n]+")


def format_count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def format_lines(path: str, text: str, offset: int, limit: int) -> str:
    """Return the lines of a range that fit, with a note of their position unless it is all."""
    lines = LINE.findall(text)
    if not lines:
        return "[the file is empty]"
    if offset >= len(lines):
        raise InputError(f"{quote(path)} has {len(lines):,} lines: offset must be less.")
    wanted = lines[offset : offset + limit if limit else None]
    shown, room = 0, MOST_CHARACTERS
    while shown < len(wanted) and len(wanted[shown]) <= room:
        room -= len(wanted[shown])
        shown += 1
    if not shown:
        return _format_long_line(wanted[0], offset + 1, len(lines))
    body = "".join(wanted[:shown])
    if shown == len(lines):
        return body
    end = offset + shown
    more = f"; continue with offset={end}" if end < len(lines) else ""
    return f"{body.rstrip(chr(10))}\n[lines {offset + 1:,} to {end:,} of {len(lines):,}{more}]"


def _format_long_line(line: str, number: int, lines: int) -> str:
    return (
        f"{line[:MOST_CHARACTERS]}\n[line {number:,} of {lines:,} has {len(line):,} characters,"
        f" {MOST_CHARACTERS:,} shown; continue with offset={number}]"
    )
