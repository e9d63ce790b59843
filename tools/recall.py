"""The tool `recall`: any original of the conversation, in full, in ranges, or by matching lines.

`start` is always an offset in the original, also when searching, so one number continues both ways
of reading. A matching line that is too long is shown around its match: JSON of megabytes on one
line is common.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated

from tools.framework.clean_text import quote
from tools.framework.errors import InputError, UnknownOriginalError
from tools.framework.tool import ToolContext, tool

MOST_CHARACTERS = 20_000
LONGEST_LINE = 500
AROUND = 200


@tool(icon="recall", effect="read", results="head_tail", timeout=10)
async def recall(
    context: ToolContext,
    id: Annotated[str, "the id a notice names: a tool_use id (toolu_...) or a message id"],
    start: Annotated[int, "first character to show or to search from"] = 0,
    length: Annotated[int, "most characters to show, up to 20000"] = MOST_CHARACTERS,
    matching: Annotated[str, "show only the lines that contain this text, ignoring case"] = "",
) -> str:
    """Read the original of something that was shortened, summarised or dropped from this
    conversation: a range of its characters, or the lines that contain a text."""
    if start < 0 or length < 1:
        raise InputError("start must be 0 or more and length 1 or more.")
    original = await context.originals.find(id)
    if original is None:
        raise UnknownOriginalError(
            f"There is nothing to recall under {quote(id)} in this conversation. Use an id exactly"
            ' as a notice names it, for example recall "toolu_01AbC...".'
        )
    if start and start >= len(original):
        raise InputError(f"{id} has {len(original):,} characters: start must be less.")
    length = min(length, MOST_CHARACTERS)
    if matching:
        return _show_matches(id, original, start, length, matching)
    return _show_range(id, original, start, length)


def _show_range(id: str, original: str, start: int, length: int) -> str:
    end = min(start + length, len(original))
    more = f"; continue with start={end}" if end < len(original) else ""
    shown = f"[{id}: {len(original):,} characters, showing {start:,} to {end:,}{more}]"
    return f"{shown}\n{original[start:end]}"


def _show_matches(id: str, original: str, start: int, length: int, matching: str) -> str:
    shown: list[str] = []
    room, rest = length, ""
    for at, line in _find_lines(original, start, matching):
        if shown and len(line) > room:
            rest = f"; continue with start={at}"
            break
        shown.append(line[:room])
        room = max(room - len(line) - 1, 0)
    searched = f"searched from {start:,}" if start else "searched whole"
    head = f"[{id}: {len(original):,} characters, {searched}, {len(shown)} matches shown{rest}]"
    return "\n".join([head, *shown])


def _find_lines(original: str, start: int, matching: str) -> Iterator[tuple[int, str]]:
    """Yield the offset of each match and its numbered line, or parts of a line that is long."""
    wanted = re.compile(re.escape(matching), re.IGNORECASE)
    number = original.count("\n", 0, start) + 1
    for line in original[start:].split("\n"):
        shown_to = -1
        for found in wanted.finditer(line):
            if found.start() >= shown_to:
                yield (
                    start + found.start(),
                    f"{number}: {_clip_line(line, found.start(), found.end())}",
                )
                shown_to = found.end() + AROUND if len(line) > LONGEST_LINE else len(line)
        start += len(line) + 1
        number += 1


def _clip_line(line: str, first: int, last: int) -> str:
    if len(line) <= LONGEST_LINE:
        return line
    low, high = max(first - AROUND, 0), min(last + AROUND, len(line))
    return f"{'…' if low else ''}{line[low:high]}{'…' if high < len(line) else ''}"
