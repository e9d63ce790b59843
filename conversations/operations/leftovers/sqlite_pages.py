"""What lies in the pages of a SQLite file and is no row: terms in the index, pages that are free.

FTS5 marks a deleted row's terms instead of removing them, so a query does not see what its segments
still contain; the format is documented in SQLite's source (ext/fts5/fts5_index.c). A free page
keeps what was on it, unless it was overwritten when it was freed (`PRAGMA secure_delete`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

#: Rows of the index's data table from here on are pages of segments; those with one of the bits
#: between are none of their leaves (FTS5's segment id, doclist-index flag and height).
FIRST_LEAF, NO_LEAF = 1 << 37, ((1 << 6) - 1) << 31
#: A term of the words themselves begins with this; others are of the indexes by prefix.
_MAIN = b"0"
_FIRST_TRUNK, _PAGE_SIZE = slice(32, 36), slice(16, 18)


def list_terms(leaf: bytes) -> Iterator[bytes]:
    """Yield the terms that a leaf of a segment contains, those of deleted rows included."""
    end = int.from_bytes(leaf[2:4])
    at, is_first, term = 0, True, b""
    footer, place = end, 0
    while footer < len(leaf):
        step, footer = _read_varint(leaf, footer)
        place += step
        at, shared = place, 0
        if not is_first:
            shared, at = _read_varint(leaf, at)
        size, at = _read_varint(leaf, at)
        term = term[:shared] + leaf[at : at + size]
        is_first = False
        if term.startswith(_MAIN):
            yield term[len(_MAIN) :]


def count_dirty_pages(path: Path) -> int:
    """Count the free pages of a file that were not overwritten."""
    with path.open("rb") as file:
        head = file.read(100)
        size = int.from_bytes(head[_PAGE_SIZE])
        size = 65_536 if size == 1 else size
        trunk, count = int.from_bytes(head[_FIRST_TRUNK]), 0
        while trunk:
            file.seek((trunk - 1) * size)
            page = file.read(size)
            used = int.from_bytes(page[4:8])
            leaves = [int.from_bytes(page[8 + 4 * n : 12 + 4 * n]) for n in range(used)]
            count += any(page[8 + 4 * used :])
            for leaf in leaves:
                file.seek((leaf - 1) * size)
                count += any(file.read(size))
            trunk = int.from_bytes(page[:4])
    return count


def read_file(path: Path, size: int = 1_000_000) -> Iterable[bytes]:
    """Yield the bytes of a file in pieces."""
    with path.open("rb") as file:
        while data := file.read(size):
            yield data


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for step in range(9):
        byte = data[at + step]
        if step == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + step + 1
    raise AssertionError
