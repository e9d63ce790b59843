"""Cells of CSV files, quoted so that no spreadsheet computes them as a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from decimal import Decimal

#: First characters of a formula; spreadsheets read full-width signs like plain ones.
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
    """Return a cell's text as it was before it was quoted against formulas."""
    is_quoted = text.startswith("'") and _would_compute(text[1:])
    return text[1:] if is_quoted else text


def _quote_formula(cell: Cell) -> Cell:
    if not isinstance(cell, str):
        return cell
    text = cell.replace("\x00", "")
    return f"'{text}" if _would_compute(text) else text


def _would_compute(text: str) -> bool:
    """Return whether a text begins like a formula, or like one that was quoted."""
    return text.lstrip(" '").startswith(_FORMULA)
