"""CSV and TSV as a Markdown table: the delimiter is the one that makes the most regular rows.

Used instead of csv.Sniffer, whose patterns take seconds on crafted input and which guesses letters
as delimiters.
"""

from __future__ import annotations

import csv
from collections import Counter
from io import StringIO
from itertools import islice

from tools.documents.text_files import decode_text_file
from tools.html.tables import format_table

DELIMITERS = ",;\t|"
LOOKED_AT = 50
MOST_LOOKED_AT = 65_536


def csv_to_markdown(data: bytes, name: str) -> str:
    """Return the rows as a Markdown table; return malformed or one-column text unchanged."""
    text = decode_text_file(data, name, takes_any_charset=True)
    delimiter = _find_delimiter(text)
    if not delimiter:
        return text
    try:
        rows = [row for row in csv.reader(_split_lines(text), delimiter=delimiter) if any(row)]
    except csv.Error:
        return text
    return "\n".join(format_table(rows)) + "\n"


def _split_lines(text: str) -> list[str]:
    """Split at line feeds and carriage returns; other separators of lines may be in a cell."""
    return list(StringIO(text, newline=""))


def _find_delimiter(text: str) -> str:
    start = _split_lines(text[:MOST_LOOKED_AT])
    best = max(DELIMITERS, key=lambda delimiter: _measure_regularity(start, delimiter))
    return best if _measure_regularity(start, best)[0] > 0 else ""


def _measure_regularity(lines: list[str], delimiter: str) -> tuple[float, int]:
    """Return the share of rows with the most common number of columns, and that number."""
    try:
        rows = list(islice(csv.reader(lines, delimiter=delimiter), LOOKED_AT))
    except csv.Error:
        return 0, 0
    widths = Counter(len(row) for row in rows if row)
    width, often = widths.most_common(1)[0] if widths else (0, 0)
    return (often / sum(widths.values()), width) if width > 1 else (0, 0)
