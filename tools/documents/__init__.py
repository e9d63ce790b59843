"""The text of a document: PDF, DOCX, XLSX, PPTX, CSV as tables, HTML, mail, plain text.

Every kind is read in a process of its own with limits on memory, time and files, without network
and with an empty environment (`tools/isolation`). Not in a thread: these readers run on foreign
files; a thread that loops cannot be ended, one that takes too much memory takes the site with it,
and all of them hold the interpreter lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tools.documents.attached_text import read_attached
from tools.documents.document_kind import WITH_PARTS, detect_kind, has_packed_text
from tools.documents.document_text import MOST_CHARACTERS, read_document
from tools.documents.parts import Part
from tools.framework.clean_text import quote
from tools.framework.errors import FileRefusedError, IsolationError
from tools.isolation.isolated_calls import call_isolated, run_isolated
from tools.isolation.process_limits import OF_DOCUMENTS, OF_TEXT, ProcessLimits

__all__ = [
    "MOST_CHARACTERS",
    "Part",
    "detect_kind",
    "extract_attached",
    "extract_text",
    "has_parts",
    "read_isolated",
]


def extract_text(
    data: bytes, name: str = "", content_type: str = "", *, part: str = "", person: str = ""
) -> str:
    """Return the text of a document as Markdown; blocking, so call it in a thread.

    `name` is a file name, path or address, for its ending and for messages. `part` is a page or
    pages of a PDF or slides ("3", "2-5"), or a sheet or range of a workbook ("Prices!A1:D20").
    `person` is the id of whom it is done for: everybody has a share of what runs at a time.
    Raises FileRefusedError for what cannot or may not be read, InputError for an unknown part.
    """
    limits = choose_limits(data)
    try:
        text: str = call_isolated(
            read_document, data, name, content_type, part, limits=limits, person=person
        )
    except IsolationError as error:
        raise _beyond_limits(name) from error
    return text


def extract_attached(data: bytes, name: str, most: int, *, person: str) -> tuple[str, int]:
    """Return the text of a file for a message, shortened to about `most` characters, and how many
    the whole has. It raises and blocks like `extract_text`.
    """
    limits = choose_limits(data)
    try:
        text, size = call_isolated(read_attached, data, name, most, limits=limits, person=person)
    except IsolationError as error:
        raise _beyond_limits(name) from error
    return str(text), int(size)


async def read_isolated(function: Callable[..., Any], data: bytes, name: str, *more: Any) -> Any:
    """Call `function(data, name, *more)`, which reads a document, in a process with its limits."""
    try:
        return await run_isolated(function, data, name, *more, limits=choose_limits(data))
    except IsolationError as error:
        raise _beyond_limits(name) from error


def choose_limits(data: bytes) -> ProcessLimits:
    """Return the limits that the reader of a document has: more for what is unpacked."""
    return OF_DOCUMENTS if has_packed_text(data) else OF_TEXT


def has_parts(data: bytes, name: str = "", content_type: str = "") -> bool:
    """Tell whether this is a PDF or Office file, whose bytes are not its text."""
    return detect_kind(data, name, content_type) in WITH_PARTS


def _beyond_limits(name: str) -> FileRefusedError:
    return FileRefusedError(
        f"{quote(name)} is not read: it could not be read within the limits of time and memory, or"
        " it is damaged."
    )
