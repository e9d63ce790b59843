"""Tables as Markdown, and the state of an HTML table while it is read.

A table with another inside, or of one column, is layout: its cells are plain paragraphs. Rows are
not padded to one width, so a page cannot make a large table out of a small one.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Table:
    rows: list[list[str]] = field(default_factory=list)
    is_layout: bool = False
    is_in_cell: bool = False

    def add_row(self) -> None:
        self.rows.append([])

    def add_cell(self, text: str) -> None:
        if not self.rows:
            self.add_row()
        self.rows[-1].append(text)

    def take_paragraphs(self) -> list[str]:
        """Remove the rows read so far and return them as plain text."""
        rows, self.rows = self.rows, []
        return [line for row in rows if (line := " ".join(filter(None, row)))]

    def take_lines(self) -> list[str]:
        """Remove the rows and return them as a Markdown table, or as text if one column wide."""
        rows = [row for row in self.rows if any(row)]
        if max(map(len, rows), default=0) < 2:
            return self.take_paragraphs()
        self.rows = []
        return format_table(rows)


def format_table(rows: list[list[str]]) -> list[str]:
    """Return the lines of a Markdown table; the first row is its head."""
    if not rows:
        return []
    lines = [f"| {' | '.join(map(_escape_cell, row))} |" for row in rows]
    return [lines[0], f"|{' --- |' * len(rows[0])}", *lines[1:]]


def _escape_cell(text: str) -> str:
    return " ".join(text.replace("|", chr(92) + "|").split())
