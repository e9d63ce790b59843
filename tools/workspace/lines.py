"""Ranges of the lines of a text, with a note of the position and how to continue."""

from __future__ import annotations

import re

from tools.framework.clean_text import quote
from tools.framework.errors import InputError

MOST_CHARACTERS = 40_000
LINE = re.compile(r"[^\n]*\n|[^\n]+")


def format_count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def format_lines(path: str, text: str, offset: int, limit: int, start: int = 0) -> str:
    """Return the lines of a range that fit, with a note of their position unless it is all.

    Of a line that does not fit, or with `start`, only a part of that line is returned.
    """
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
    if start or not shown:
        return _format_part(wanted[0], start, offset, len(lines))
    body = "".join(wanted[:shown])
    if shown == len(lines):
        return body
    end = offset + shown
    more = f"; continue with offset={end}" if end < len(lines) else ""
    return f"{body.rstrip(chr(10))}\n[lines {offset + 1:,} to {end:,} of {len(lines):,}{more}]"


def _format_part(line: str, start: int, offset: int, lines: int) -> str:
    """Return a part of the line behind `offset` others, with a note of how to continue."""
    if start >= len(line):
        raise InputError(f"Line {offset + 1:,} has {len(line):,} characters: start must be less.")
    end = min(start + MOST_CHARACTERS, len(line))
    more = ""
    if end < len(line):
        more = f"; continue with offset={offset} and start={end}"
    elif offset + 1 < lines:
        more = f"; continue with offset={offset + 1}"
    note = f"line {offset + 1:,} of {lines:,} has {len(line):,} characters"
    part = line[start:end].removesuffix("\n")
    return f"{part}\n[{note}, {start:,} to {end:,} shown{more}]"
