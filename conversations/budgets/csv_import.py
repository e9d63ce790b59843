"""CSV taken in: each line is judged by doing it, and then all of it is kept or nothing.

So a preview is the deed itself, undone; and the deed is what was previewed, or it is not done.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from django.db import transaction

from conversations.budgets.usage.cells import unquote_cell

#: Lines and characters of one file.
MOST_LINES, MOST_CHARS = 1_000, 500_000

Row: TypeAlias = Mapping[str, str]
#: Does one line and gives what that was (create, change, off or same) and the words for it.
ApplyRow: TypeAlias = Callable[[Row], tuple[str, str]]


class LineRefused(ValueError):
    """A line cannot be done; the text says why."""

    code = "line"


@dataclass(frozen=True, slots=True)
class Line:
    """What a line of the file does; `verb` is "error" where it cannot."""

    number: int
    verb: str
    text: str


@dataclass(frozen=True, slots=True)
class Plan:
    lines: tuple[Line, ...]
    is_kept: bool = False

    @property
    def errors(self) -> int:
        return sum(line.verb == "error" for line in self.lines)

    @property
    def changes(self) -> int:
        return sum(line.verb not in ("error", "same") for line in self.lines)

    @property
    def digest(self) -> str:
        return hashlib.sha256(repr(self.lines).encode()).hexdigest()


def import_rows(
    text: str, columns: Sequence[str], ready: Callable[[list[Row]], ApplyRow], expected: str = ""
) -> Plan:
    """Do every line and keep that only if it is what was `expected`, by its digest."""
    try:
        numbered = _read_rows(text, columns)
    except LineRefused as error:
        return Plan((Line(1, "error", str(error)),))
    do = ready([row for _number, row in numbered])
    with transaction.atomic():
        plan = Plan(tuple(_apply_line(number, row, do) for number, row in numbered))
        is_kept = plan.digest == expected and not plan.errors
        transaction.set_rollback(not is_kept)
    return Plan(plan.lines, is_kept)


def _apply_line(number: int, row: Row, do: ApplyRow) -> Line:
    try:
        with transaction.atomic():
            return Line(number, *do(row))
    except LineRefused as error:
        return Line(number, "error", str(error))


def _read_rows(text: str, columns: Sequence[str]) -> list[tuple[int, Row]]:
    """Read the file; the first line names its columns, of which some may be missing."""
    if len(text) > MOST_CHARS:
        raise LineRefused(f"At most {MOST_CHARS:,} characters can be taken in at once.")
    if "\x00" in text:
        raise LineRefused("The text holds characters that are none.")
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    found: list[tuple[int, Row]] = []
    try:
        names = [name.strip() for name in reader.fieldnames or ()]
        odd = [name for name in names if name not in columns]
        if not names or odd or len(set(names)) < len(names):
            raise LineRefused(f"The first line names the columns: {', '.join(columns)}.")
        reader.fieldnames = names
        for row in reader:
            if None in row or None in row.values():
                raise LineRefused(f"Line {reader.line_num} has not as many cells as the first.")
            cells = {name: unquote_cell(value.strip()) for name, value in row.items()}
            found.append((reader.line_num, {name: cells.get(name, "") for name in columns}))
            if len(found) > MOST_LINES:
                raise LineRefused(f"At most {MOST_LINES:,} lines can be taken in at once.")
    except csv.Error as error:
        raise LineRefused(f"Line {reader.line_num} is no CSV: {error}.") from error
    if not found:
        raise LineRefused("There is nothing below the first line.")
    return found
