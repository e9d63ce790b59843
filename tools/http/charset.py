"""Bytes to text, by the declared charset if it is one of those that pages use.

Python has codecs that are not charsets or are slow on crafted input (punycode, unicode_escape), so
only names on a list are used. Bytes that cannot be decoded become U+FFFD.
"""

from __future__ import annotations

import codecs
import re

NAMED = re.compile(r"charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
WRITTEN_IN = re.compile(
    r"utf-8(-sig)?|utf-16(-[lb]e)?|ascii|iso8859-\d+|cp125\d|koi8-[ru]|mac-roman|shift_jis|cp932"
    r"|euc_jp|iso2022_jp|euc_kr|cp949|gb2312|gbk|gb18030|big5(hkscs)?"
)
BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
SNIFFED = 2_048


def decode_bytes(body: bytes, content_type: str) -> str:
    """Decode by byte order mark, else by header, else as the page declares, else as UTF-8."""
    for mark, charset in BOMS:
        if body.startswith(mark):
            return body.decode(charset, errors="replace")
    start = body[:SNIFFED].decode("latin-1")
    return body.decode(
        _find_charset(content_type) or _find_charset(start) or "utf-8", errors="replace"
    )


def _find_charset(text: str) -> str | None:
    found = NAMED.search(text)
    if found is None:
        return None
    try:
        name = codecs.lookup(found[1]).name
    except LookupError:
        return None
    if name in ("iso8859-1", "ascii"):  # browsers read both as Windows-1252
        return "cp1252"
    return name if WRITTEN_IN.fullmatch(name) else None
