"""The text of a document: PDF, DOCX, XLSX, CSV as tables, HTML, plain text.

PDF and Office files are parsed in a child process with limits on memory, time and files and with an
empty environment. Used instead of a thread: these parsers are large and run on foreign files; a
thread that loops cannot be ended and one that takes too much memory takes the site with it, while a
child is killed and its file is refused by name. It costs about half a second a document. CSV, HTML
and plain text are read in this process: their readers are our own, small and linear.
"""

from __future__ import annotations

from typing import assert_never

from tools.documents.child import MOST_CHARACTERS
from tools.documents.csv_tables import csv_to_markdown
from tools.documents.document_kind import WITH_PARTS, detect_kind
from tools.documents.isolation import read_in_child
from tools.documents.parts import Part
from tools.documents.text_files import decode_text_file
from tools.framework.clean_text import quote
from tools.framework.errors import FileRefusedError, InputError
from tools.html.to_markdown import html_to_markdown
from tools.http.charset import decode_bytes

__all__ = ["MOST_CHARACTERS", "Part", "extract_text", "has_parts", "read_source"]


def extract_text(data: bytes, name: str = "", content_type: str = "", *, part: str = "") -> str:
    """Return the text of a document as Markdown; blocking, so call it in a thread.

    `name` is a file name, path or address, for its ending and for messages. `part` is a page or
    pages of a PDF ("3", "2-5"), or a sheet or range of a workbook ("Prices", "Prices!A1:D20").
    Raises FileRefusedError for what cannot or may not be read, InputError for an unknown part.
    """
    kind = detect_kind(data, name, content_type)
    if part and kind not in WITH_PARTS:
        raise InputError("part is for the pages of a PDF or the sheets of a workbook.")
    match kind:
        case "pdf" | "office":
            return _join_parts(read_in_child(data, kind, name, part))
        case "csv":
            return csv_to_markdown(data, name)
        case "html":
            return html_to_markdown(decode_bytes(data, content_type), name)
        case "text":
            return decode_text_file(data, name)
        case _:
            assert_never(kind)


def has_parts(data: bytes, name: str = "", content_type: str = "") -> bool:
    """Tell whether this is a PDF or Office file, whose bytes are not its text."""
    return detect_kind(data, name, content_type) in WITH_PARTS


def read_source(data: bytes, name: str) -> str:
    """Return the exact text of a text file; raises FileRefusedError for a PDF or Office file."""
    if has_parts(data, name):
        raise FileRefusedError(f"{quote(name)} is a document, not a text file: it has no source.")
    return decode_text_file(data, name)


def _join_parts(parts: list[Part]) -> str:
    return "\n\n".join(
        "\n".join(filter(None, (part.title and f"[{part.title}]", part.text))) for part in parts
    )
