"""The text of a PDF, page by page, in the order the file draws it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BytesIO

from pypdf import PdfReader
from pypdf.errors import DependencyError

from tools.documents.parts import Part, RefusedError, UnknownPartError

PAGES = re.compile(r"(?:pages? )?(\d{1,6})(?:\s*-\s*(\d{1,6}))?", re.IGNORECASE)
MOST_PAGES = 20_000


def read_pdf(data: bytes, part: str) -> Iterator[Part]:
    """Yield the requested pages, or all."""
    reader = PdfReader(BytesIO(data), strict=False)
    if reader.is_encrypted and not _opens_without_password(reader):
        raise RefusedError("it is encrypted; save it without a password first")
    count = len(reader.pages)
    if count > MOST_PAGES:
        raise RefusedError(f"it has {count:,} pages; at most {MOST_PAGES:,} are read")
    first, last = _parse_pages(part, count)
    for number in range(first, last + 1):
        text = reader.pages[number - 1].extract_text().strip()
        yield Part(f"page {number} of {count}", text or "(no text; an image or an empty page)")


def _opens_without_password(reader: PdfReader) -> bool:
    """Try the empty password, which many files have only to forbid printing."""
    try:
        return bool(reader.decrypt(""))
    except (DependencyError, NotImplementedError):
        return False


def _parse_pages(part: str, count: int) -> tuple[int, int]:
    if not part.strip():
        return 1, count
    found = PAGES.fullmatch(part.strip())
    first = int(found[1]) if found else 0
    last = int(found[2] or found[1]) if found else 0
    if not 1 <= first <= last or first > count:
        raise UnknownPartError(f"it has {count:,} pages; part is like 3 or 2-5.")
    return first, min(last, count)
