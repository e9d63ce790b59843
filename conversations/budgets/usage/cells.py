"""Rows as lines of CSV, quoted so that no spreadsheet computes a cell as a formula, and as JSON."""

from __future__ import annotations

import csv
import io
import json
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


def write_json_lines(rows: Iterable[Iterable[Cell]]) -> Iterator[bytes]:
    """Yield each row as a line of JSON: an object whose names are the cells of the first row."""
    lines = iter(rows)
    names = tuple(next(lines))
    for row in lines:
        record = dict(zip(names, row, strict=True))
        # A decimal number stays exact as text.
        line = json.dumps(record, default=str, ensure_ascii=False, separators=(",", ":"))
        yield line.encode() + b"\n"


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
