"""What the API accepts as a file in a message, judged by the bytes, never by a name or a header.

The limits are those of the API, here and nowhere else. The type of a file is what its first bytes
show; a text is UTF-8 without control characters. It may be markup: it is never served as a page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from conversations.context.errors import ContextError
from conversations.context.tokens import images, pdf
from conversations.context.tokens.media_words import HEAD, decode_base64

PDF, TEXT = "application/pdf", "text/plain"
TYPES = (*images.TYPES, PDF, TEXT)
#: Most bytes of an image (5 MiB as base64), of a PDF (fits a request of 32 MB), and of a text.
MOST_IMAGE, MOST_PDF, MOST_TEXT = 5 * 1024 * 1024 // 4 * 3, 22_000_000, 1_000_000
MOST_BYTES = max(MOST_IMAGE, MOST_PDF, MOST_TEXT)
#: Most pixels of a side; of a side if a request has more than `FEW_IMAGES` images.
MOST_SIDE, FEW_IMAGES, MOST_SIDE_OF_MANY = 8_000, 20, 2_000
#: Most images and pages of a request, for a window up to `SMALL_WINDOW` tokens and a larger one.
SMALL_WINDOW, MOST_IN_SMALL, MOST_IN_LARGE = 200_000, 100, 600
#: Most characters of all files of a conversation, of the 32 MB that a request may have.
MOST_CARRIED = 30_000_000
#: Bytes at the beginning of a PDF in which its mark may stand.
_PDF_HEAD = 1_024
CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")


class MediaError(ContextError):
    """The bytes cannot be sent; `code` says why: type, empty, broken, pixels, pages, locked,
    large."""

    def __init__(self, code: str, number: int = 0) -> None:
        super().__init__(code)
        self.code, self.number = code, number


@dataclass(frozen=True, slots=True)
class Media:
    """A file that can be sent. `text` is the content of a text file, without a byte order mark."""

    media_type: str
    width: int | None = None
    height: int | None = None
    pages: int | None = None
    text: str = ""


def identify_media(data: bytes) -> Media:
    """Identify the bytes; raises MediaError."""
    if not data.strip():
        raise MediaError("empty")
    if name := images.detect_media_type(data):
        return _identify_image(name, data)
    if pdf.is_pdf(data):
        return _identify_pdf(data)
    return _identify_text(data)


def find_source_flaw(kind: str, source: dict[str, Any]) -> str:
    """Return why the API refuses the base64 of an image or a document; "" if nothing shows it.

    Only the beginning is read, so that every request can be checked.
    """
    data, media_type = source.get("data"), source.get("media_type")
    head = decode_base64(data, HEAD) if isinstance(data, str) else b""
    if kind == "document":
        is_sound = media_type == PDF and b"%PDF-" in head[:_PDF_HEAD]
        return "" if is_sound else "is no PDF"
    if media_type not in images.TYPES or images.detect_media_type(head) != media_type:
        return "is not of its media type"
    size = images.read_size(head)
    is_large = size is not None and max(size) > MOST_SIDE
    return f"has a side of more than {MOST_SIDE:,} pixels" if is_large else ""


def is_large_image(source: dict[str, Any]) -> bool:
    """Return whether the base64 of an image shows more pixels than each of many images may have."""
    data = source.get("data")
    size = images.read_size(decode_base64(data, HEAD)) if isinstance(data, str) else None
    return size is not None and max(size) > MOST_SIDE_OF_MANY


def find_most_media(window: int) -> int:
    """Return how many images, and how many pages, a request takes for a window in tokens."""
    return MOST_IN_SMALL if window <= SMALL_WINDOW else MOST_IN_LARGE


def _identify_image(name: str, data: bytes) -> Media:
    _demand_size(data, MOST_IMAGE)
    size = images.read_size(data)
    if size is None or not all(size):
        raise MediaError("broken")
    if max(size) > MOST_SIDE:
        raise MediaError("pixels", max(size))
    return Media(name, *size)


def _identify_pdf(data: bytes) -> Media:
    _demand_size(data, MOST_PDF)
    if pdf.is_locked(data):
        raise MediaError("locked")
    count = pdf.count_pages(data)
    if count > MOST_IN_LARGE:
        raise MediaError("pages", count)
    return Media(PDF, pages=count)


def _identify_text(data: bytes) -> Media:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MediaError("type") from error
    if CONTROL.search(text):
        raise MediaError("type")
    _demand_size(data, MOST_TEXT)
    if not text.strip():
        raise MediaError("empty")
    return Media(TEXT, text=text)


def _demand_size(data: bytes, most: int) -> None:
    if len(data) > most:
        raise MediaError("large", most)
