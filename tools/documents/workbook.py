"""The cells of an XLSX as one Markdown table a sheet: values; a formula where no value is stored.

Programs that write workbooks without computing them store formulas alone.
The size that a sheet declares is not trusted; rows and columns are counted and bounded, and what is
left out is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime, time
from io import BytesIO
from itertools import repeat, zip_longest
from typing import Any
from zipfile import ZipFile

from openpyxl import load_workbook
from openpyxl.utils import get_column_letter, range_boundaries

from tools.documents.parts import Part, UnknownPartError
from tools.html.tables import format_table

MOST_ROWS = 50_000
MOST_COLUMNS = 256
Box = tuple[int, int, int, int]
FORMULA = re.compile(rb"<(?:\w+:)?f[ >]")
#: As large as a sheet can be.
FULL: Box = (1, 1, 16_384, 1_048_576)


def read_workbook(data: bytes, part: str) -> Iterator[Part]:
    """Yield the sheets, one of them, or a range of one."""
    sheets = _load_sheets(data, are_values=True)
    name, box = _parse_part(part, list(sheets))
    formulas = _load_sheets(data, are_values=False) if _has_formulas(data) else sheets
    for title in [name] if name else list(sheets):
        yield _read_sheet(sheets[title], formulas[title], title, box)


def _load_sheets(data: bytes, *, are_values: bool) -> dict[str, Any]:
    book = load_workbook(BytesIO(data), read_only=True, data_only=are_values, keep_links=False)
    return {sheet.title: sheet for sheet in book.worksheets}


def _has_formulas(data: bytes) -> bool:
    with ZipFile(BytesIO(data)) as archive:
        names = [name for name in archive.namelist() if name.startswith("xl/worksheets/")]
        return any(FORMULA.search(archive.read(name)) for name in names)


def _parse_part(part: str, titles: list[str]) -> tuple[str, Box]:
    if not part or part in titles:
        return part, FULL
    name, _, area = part.rpartition("!")
    name = name.strip("'") or (titles[0] if area[:1].isalpha() and ":" in area else "")
    if name in titles:
        try:
            box = range_boundaries(area)
        except ValueError:
            box = None
        if box and all(box):
            return name, box
    shown = ", ".join(titles[:50])
    raise UnknownPartError(f"its sheets are {shown}; part is like Sheet1 or Sheet1!A1:D20.")


def _iterate_rows(sheet: Any, box: Box) -> Iterator[tuple[object, ...]]:
    """Yield the rows of a range, at most one row and one column more than are shown."""
    left, top, right, bottom = box
    sheet.reset_dimensions()
    rows: Iterator[tuple[object, ...]] = sheet.iter_rows(
        min_row=top,
        max_row=min(bottom, top + MOST_ROWS),
        min_col=left,
        max_col=min(right, left + MOST_COLUMNS),
        values_only=True,
    )
    return rows


def _read_sheet(sheet: Any, formulas: Any, title: str, box: Box) -> Part:
    left, top, *_ = box
    rows: list[list[str]] = []
    written = repeat(()) if formulas is sheet else _iterate_rows(formulas, box)
    for row, also in zip(_iterate_rows(sheet, box), written, strict=False):
        pairs = zip_longest(row, also)
        cells = [_format_value(other if value is None else value) for value, other in pairs]
        while cells and not cells[-1]:
            cells.pop()
        rows.append(cells)
    rest = _describe_rest(rows, left, top)
    rows = [cells[:MOST_COLUMNS] for cells in rows[:MOST_ROWS]]
    while rows and not rows[-1]:
        rows.pop()
    width = max(map(len, rows), default=0)
    if not width:
        return Part(f"sheet {title}{rest}", "(no values)")
    last = f"{get_column_letter(left + width - 1)}{top + len(rows) - 1}"
    padded = [row + [""] * (width - len(row)) for row in rows if row]
    note = f"sheet {title}, {get_column_letter(left)}{top}:{last}{rest}"
    return Part(note, "\n".join(format_table(padded)))


def _describe_rest(rows: list[list[str]], left: int, top: int) -> str:
    """Return what is said of rows and columns that are left out, "" for none."""
    found = []
    if len(rows) > MOST_ROWS:
        found.append(f"rows below {top + MOST_ROWS - 1}")
    if any(len(cells) > MOST_COLUMNS for cells in rows):
        found.append(f"columns after {get_column_letter(left + MOST_COLUMNS - 1)}")
    return f"; {' and '.join(found)} are left out, read them as a range" if found else ""


def _format_value(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "TRUE" if value else "FALSE"
        case float():
            return f"{value:.15g}"
        case datetime():
            # Without what a day alone, or a minute, does not say.
            return value.isoformat(sep=" ").removesuffix(" 00:00:00").removesuffix(":00")
        case date() | time():
            return value.isoformat()
        case _:
            return str(value)
