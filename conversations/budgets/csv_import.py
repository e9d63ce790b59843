"""CSV import: all lines are applied in one transaction, committed as a whole or not at all.

A preview applies the same lines and rolls back. An import names the digest of its preview and is
committed only if its result is the same.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from conversations.budgets.usage.cells import unquote_cell

#: Lines and characters of one file.
MOST_LINES, MOST_CHARS = 1_000, 500_000

Row: TypeAlias = Mapping[str, str]
#: Applies one line and returns its verb (create, change, off or same) and a text that describes it.
ApplyRow: TypeAlias = Callable[[Row], tuple[str, str]]


#: What people read for the verb of a line.
VERBS = {
    "create": gettext_lazy("create"),
    "change": gettext_lazy("change"),
    "off": gettext_lazy("off"),
    "same": gettext_lazy("same"),
    "error": gettext_lazy("error"),
}


class LineRefused(ValueError):
    """A line cannot be applied; the message says why."""

    code = "line"


@dataclass(frozen=True, slots=True)
class Line:
    """What one line of the file does; `verb` is "error" if it cannot be applied."""

    number: int
    verb: str
    text: str

    @property
    def label(self) -> str:
        return str(VERBS[self.verb])


@dataclass(frozen=True, slots=True)
class Plan:
    """What a file does, line by line; `is_kept` if that was committed."""

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
    """Apply every line, and commit if the result is the one `expected` by its digest."""
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
    """Return the numbered rows; the first line names the columns, of which some may be missing."""
    if len(text) > MOST_CHARS:
        raise LineRefused(
            _("At most %(count)s characters can be taken in at once.")
            % {"count": f"{MOST_CHARS:,}"}
        )
    if "\x00" in text:
        raise LineRefused(_("The text holds characters that are none."))
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    found: list[tuple[int, Row]] = []
    try:
        names = [name.strip() for name in reader.fieldnames or ()]
        odd = [name for name in names if name not in columns]
        if not names or odd or len(set(names)) < len(names):
            raise LineRefused(
                _("The first line names the columns: %(columns)s.")
                % {"columns": ", ".join(columns)}
            )
        reader.fieldnames = names
        for row in reader:
            if None in row or None in row.values():
                raise LineRefused(
                    _("Line %(number)s has not as many cells as the first.")
                    % {"number": reader.line_num}
                )
            cells = {name: unquote_cell(value.strip()) for name, value in row.items()}
            found.append((reader.line_num, {name: cells.get(name, "") for name in columns}))
            if len(found) > MOST_LINES:
                raise LineRefused(
                    _("At most %(count)s lines can be taken in at once.")
                    % {"count": f"{MOST_LINES:,}"}
                )
    except csv.Error as error:
        raise LineRefused(
            _("Line %(number)s is no CSV: %(why)s.") % {"number": reader.line_num, "why": error}
        ) from error
    if not found:
        raise LineRefused(_("There is nothing below the first line."))
    return found
