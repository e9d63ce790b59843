"""What a PDF shows without being rendered: its number of pages, and whether it is encrypted.

Pages are leaves of type `Page`. Newer files keep them in compressed object streams, so those are
decompressed, too, up to a common bound against decompression bombs.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

#: Bytes that all object streams together may have when decompressed.
MOST_UNPACKED = 20_000_000
#: Bytes that are decompressed at once: what is no stream at all costs no more.
_PIECE = 4_096
_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z0-9])")
_LOCKED = re.compile(rb"/Encrypt\s*(?:\d{1,9}\s+\d{1,5}\s+R|<<)")
_OBJECTS = re.compile(rb"/ObjStm(?![A-Za-z0-9])[^>]{0,300}>{2}\s{0,4}stream\r?\n")


def is_pdf(data: bytes) -> bool:
    return data.startswith(b"%PDF-")


def is_locked(data: bytes) -> bool:
    """Return whether the file is encrypted, as far as its bytes show."""
    return _LOCKED.search(data) is not None


def count_pages(data: bytes) -> int:
    """Count the pages; 1 where none is found."""
    found = len(_PAGE.findall(data))
    return found + sum(len(_PAGE.findall(part)) for part in _unpack_objects(data)) or 1


def _unpack_objects(data: bytes) -> Iterator[bytes]:
    """Yield the object streams; together at most as much is read as the file has bytes."""
    view, read, left = memoryview(data), 0, MOST_UNPACKED
    for match in _OBJECTS.finditer(data):
        unpack, parts = zlib.decompressobj(), []
        for at in range(match.end(), len(data), _PIECE):
            piece = view[at : at + _PIECE]
            read += len(piece)
            try:
                parts.append(unpack.decompress(piece, left))
            except zlib.error:
                break
            left -= len(parts[-1])
            if unpack.eof or left <= 0 or read > len(data):
                break
        read -= len(unpack.unused_data)
        yield b"".join(parts)
        if left <= 0 or read > len(data):
            return
