"""The tool `recall`: any original of the conversation, found by its words or read by its id.

Without an id it searches the texts of the conversation, results of tools and arguments of calls.
With an id it reads the original: in full, in ranges, or the lines that contain a text. `start` is
always an offset in the original, also when searching for lines, so one number continues both ways
of reading. A matching line that is too long is shown around its match: JSON of megabytes on one
line is common. Lines are found by plain-text search, linear in the original's length, in a process
of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from tools.framework.clean_text import quote
from tools.framework.errors import InputError, UnknownOriginalError
from tools.framework.tool import ToolContext, tool
from tools.isolation.isolated_calls import run_isolated
from tools.text.lower_case import Places, list_spellings, lower_text

MOST_CHARACTERS = 20_000
LONGEST_LINE = 500
AROUND = 200
#: Characters of a query, and originals that a search names.
MOST_QUERY, MOST_FOUND = 1_000, 8


@tool(icon="recall", effect="read", results="head_tail", timeout=10)
async def recall(
    context: ToolContext,
    id: Annotated[str, "the id a notice or a search names; leave it out to search"] = "",
    query: Annotated[str, "without an id: words of what you look for, or a name, path or id"] = "",
    start: Annotated[int, "with an id: first character to show or to search from"] = 0,
    length: Annotated[int, "most characters to show, up to 20000"] = MOST_CHARACTERS,
    matching: Annotated[str, "with an id: only the lines that contain this, ignoring case"] = "",
) -> str:
    """Read again what was shortened, summarised or dropped from this conversation. With a query it
    searches everything you were shown and everything you did, and names the best originals with
    their ids; with an id it shows that original: a range of it, or the lines with a text."""
    if len(query) > MOST_QUERY or len(matching) > MOST_QUERY:
        raise InputError(f"query and matching may have at most {MOST_QUERY:,} characters.")
    if not id:
        return await _search(context, query or matching)
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
        shown: str = await run_isolated(show_matches, id, original, start, length, matching)
        return shown
    return _show_range(id, original, start, length)


async def _search(context: ToolContext, query: str) -> str:
    if not query.strip():
        raise InputError("Give an id to read, or a query to search for.")
    found = await context.originals.search(query, MOST_FOUND)
    if not found:
        return "Nothing in this conversation has any of these words. Try other words, or fewer."
    lines = [f"The best {len(found)} for {quote(query)}; recall an id to read it:"]
    for one in found:
        size = f"{one.chars:,} characters{', in view' if one.is_shown else ''}"
        also = f' (and "{one.also}")' if one.also else ""
        if one.copies:
            copies = ", ".join(f'"{copy}"' for copy in one.copies)
            also += f" (nearly the same: {copies})"
        lines += [f'recall "{one.id}"{also}: {one.label} ({size})', f"  {one.passage}"]
    return "\n".join(lines)


def _show_range(id: str, original: str, start: int, length: int) -> str:
    end = min(start + length, len(original))
    more = f"; continue with start={end}" if end < len(original) else ""
    shown = f"[{id}: {len(original):,} characters, showing {start:,} to {end:,}{more}]"
    return f"{shown}\n{original[start:end]}"


def show_matches(id: str, original: str, start: int, length: int, matching: str) -> str:
    """Show the lines of an original that contain a text, as many as fit in `length` characters."""
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
    rest = original[start:]
    wanted = list_spellings(matching, lower_text(rest))
    number = original.count("\n", 0, start) + 1
    for line in rest.split("\n"):
        places, shown_to = Places(lower_text(line), wanted), 0
        while found := places.find_first(shown_to):
            at, end = found
            yield start + at, f"{number}: {_clip_line(line, at, end)}"
            shown_to = max(end, end + AROUND if len(line) > LONGEST_LINE else len(line))
        start += len(line) + 1
        number += 1


def _clip_line(line: str, first: int, last: int) -> str:
    if len(line) <= LONGEST_LINE:
        return line
    low, high = max(first - AROUND, 0), min(last + AROUND, len(line))
    return f"{'…' if low else ''}{line[low:high]}{'…' if high < len(line) else ''}"
