"""Cells of CSV files, quoted so that no spreadsheet computes them as a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from decimal import Decimal

#: Characters a formula begins with; spreadsheets read full-width signs as plain ones.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

Cell = str | int | Decimal | None


def write_csv_lines(rows: Iterable[Iterable[Cell]]) -> Iterator[bytes]:
    """Yield rows as lines of a CSV file in UTF-8, with the byte order mark spreadsheets expect."""
    page = io.StringIO()
    writer = csv.writer(page)
    yield b"\xef\xbb\xbf"
    for row in rows:
        writer.writerow([_quote_formula(cell) for cell in row])
        yield page.getvalue().encode()
        page.seek(0)
        page.truncate()


def format_dollars(micros: int) -> str:
    """Write micro-dollars as dollars with six decimals."""
    sign, size = ("-" if micros < 0 else ""), abs(micros)
    return f"{sign}{size // 1_000_000}.{size % 1_000_000:06}"


def unquote_cell(text: str) -> str:
    """Read a cell back as it was before it was quoted against formulas."""
    is_quoted = text.startswith("'") and _would_compute(text[1:])
    return text[1:] if is_quoted else text


def _quote_formula(cell: Cell) -> Cell:
    if not isinstance(cell, str):
        return cell
    text = cell.replace("\x00", "")
    return f"'{text}" if _would_compute(text) else text


def _would_compute(text: str) -> bool:
    """Return whether a text begins like a formula, or was quoted before."""
    return text.lstrip(" '").startswith(_FORMULA)
