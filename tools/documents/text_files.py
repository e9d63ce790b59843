"""Decoding of text files; binary files are refused."""

from __future__ import annotations

import codecs
import re

from tools.framework.clean_text import quote
from tools.framework.errors import FileRefusedError

SNIFFED = 8_192
STRAY = re.compile("\ufffd")
CONTROLS = re.compile(r"[\x01-\x08\x0e-\x1f]")
WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
#: A character beyond ASCII that was decoded.
DECODED = re.compile("[^\x00-\x7f\ufffd]")


def decode_text_file(data: bytes, name: str, *, takes_any_charset: bool = False) -> str:
    """Decode UTF-16 with a byte order mark, or UTF-8, or else Windows-1252.

    Raises FileRefusedError for a binary file; one with many bytes that are not UTF-8 counts as such
    unless `takes_any_charset`.
    """
    if data.startswith(WIDE):
        return _decode_utf16(data, name)
    start = data[:SNIFFED].decode("utf-8-sig", errors="replace")
    strange = CONTROLS if takes_any_charset else STRAY
    if "\0" in start or len(strange.findall(start)) * 10 > len(start):
        raise _binary_error(data, name)
    text = data.decode("utf-8-sig", errors="replace")
    # Of a text with more characters of UTF-8 than invalid bytes those bytes alone are lost. Fewer
    # may be there by accident: two characters of Windows-1252 can look like one.
    strays = text.count("\ufffd")
    is_utf8 = not strays or data.startswith(codecs.BOM_UTF8)
    is_utf8 = is_utf8 or sum(1 for _ in DECODED.finditer(text)) > strays
    # Programs that write no UTF-8 mostly write Windows-1252.
    return text if is_utf8 else data.decode("cp1252", errors="replace")


def _decode_utf16(data: bytes, name: str) -> str:
    try:
        text = data.decode("utf-16")
    except UnicodeDecodeError as error:
        raise _binary_error(data, name) from error
    if "\0" in text[:SNIFFED] or "\ufffe" in text[:SNIFFED] or "\ufeff" in text[:SNIFFED]:
        raise _binary_error(data, name)
    return text


def _binary_error(data: bytes, name: str) -> FileRefusedError:
    error = FileRefusedError(f"{quote(name)} is a binary file ({len(data):,} bytes), not text.")
    return error.because("binary", path=quote(name), size=len(data))
