"""Cells of files for spreadsheets: a text that a spreadsheet would compute is a text there too."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from decimal import Decimal

#: What a formula begins with; full-width signs are read as the plain ones.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

Cell = str | int | Decimal | None


def write_csv_lines(rows: Iterable[Iterable[Cell]]) -> Iterator[bytes]:
    """Write rows as lines of a CSV file in UTF-8, with the mark that spreadsheets look for."""
    page = io.StringIO()
    writer = csv.writer(page)
    yield b"\xef\xbb\xbf"
    for row in rows:
        writer.writerow([_quote_formula(cell) for cell in row])
        yield page.getvalue().encode()
        page.seek(0)
        page.truncate()


def format_dollars(micros: int) -> str:
    """Write micro-dollars as dollars, with all their digits."""
    sign, size = ("-" if micros < 0 else ""), abs(micros)
    return f"{sign}{size // 1_000_000}.{size % 1_000_000:06}"


def unquote_cell(text: str) -> str:
    """Read a cell of a file back: what was made a text there is what it was."""
    is_quoted = text.startswith("'") and _would_compute(text[1:])
    return text[1:] if is_quoted else text


def _quote_formula(cell: Cell) -> Cell:
    if not isinstance(cell, str):
        return cell
    text = cell.replace("\x00", "")
    return f"'{text}" if _would_compute(text) else text


def _would_compute(text: str) -> bool:
    """Say whether a text is a formula, or one that was quoted before."""
    return text.lstrip(" '").startswith(_FORMULA)
