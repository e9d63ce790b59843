"""An uploaded file as the objects in it, read in portions and never unpacked to disk.

An archive is looked into for its conversations only, its list of files is bounded before it is
read, and what comes out is counted while it comes: a small file that unpacks to a huge one is
stopped.
"""

from __future__ import annotations

import gzip
import re
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO

PORTION = 1 << 18
#: Bytes of the list of files at the end of an archive.
MOST_LISTING = 5_000_000
_CONVERSATIONS = re.compile(r"(?:^|/)conversations[^/]*\.jsonl?$", re.IGNORECASE)
_STRUCTURE, _STRING = re.compile(rb'["{}]'), re.compile(rb'["\\]')
_BROKEN = (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError, NotImplementedError)


class UploadError(Exception):
    """The file cannot be read, as a whole or from here on; the text is for the person."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


def objects(file: IO[bytes], *, most: int, most_each: int) -> Iterator[bytes]:
    """Give each JSON object of a file, an archive or a packed file; raises UploadError."""
    try:
        yield from _objects(file, most, most_each)
    except _BROKEN as error:
        raise UploadError("broken", f"The file cannot be read: {error}") from error


def _objects(file: IO[bytes], most: int, most_each: int) -> Iterator[bytes]:
    start = file.read(4)
    file.seek(0)
    if start == b"PK\x03\x04":
        yield from _archived(file, most, most_each)
    elif start[:2] == b"\x1f\x8b":
        with gzip.GzipFile(fileobj=file) as unpacked:
            yield from _values(_bounded(unpacked, most), most_each)
    else:
        yield from _values(_bounded(file, most), most_each)


def _archived(file: IO[bytes], most: int, most_each: int) -> Iterator[bytes]:
    _demand_small_listing(file)
    with zipfile.ZipFile(file) as archive:
        names = [name for name in archive.namelist() if _CONVERSATIONS.search(name)]
        if not names:
            raise UploadError("none", "The archive has no conversations.json or .jsonl in it.")
        for name in sorted(names):
            with archive.open(name) as member:
                yield from _values(_bounded(member, most), most_each)


def _demand_small_listing(file: IO[bytes]) -> None:
    file.seek(0, 2)
    file.seek(max(0, file.tell() - 66_000))
    tail = file.read()
    file.seek(0)
    at = tail.rfind(b"PK\x05\x06")
    if at >= 0 and int.from_bytes(tail[at + 12 : at + 16], "little") > MOST_LISTING:
        raise UploadError("too_many", "The archive has too many files in it.")


def _bounded(file: IO[bytes] | gzip.GzipFile, most: int) -> Iterator[bytes]:
    left = most
    while portion := file.read(PORTION):
        left -= len(portion)
        if left < 0:
            raise UploadError("too_big", f"The conversations have more than {most:,} bytes.")
        yield portion


def _values(portions: Iterator[bytes], most_each: int) -> Iterator[bytes]:
    """Give the objects of JSON lines, or of whatever else holds objects."""
    first = next(portions, b"")
    line = first.lstrip()[: first.find(b"\n") + 1 or None].strip()
    read = _lines if line.startswith(b"{") and line.endswith(b"}") else _balanced
    return read(_again(first, portions), most_each)


def _again(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _lines(portions: Iterator[bytes], most_each: int) -> Iterator[bytes]:
    """Give each line, so that a bad one spoils no other."""
    held = bytearray()
    for portion in portions:
        held += portion
        *whole, rest = held.split(b"\n")
        held = rest
        for line in (*whole, rest):
            _demand_size(len(line), most_each)
        yield from (bytes(line) for line in whole if line.strip())
    if held.strip():
        yield bytes(held)


def _balanced(portions: Iterator[bytes], most_each: int) -> Iterator[bytes]:
    """Give each outermost object, found by its braces."""
    held, at, start, depth, is_text = bytearray(), 0, -1, 0, False
    for portion in portions:
        held += portion
        while match := (_STRING if is_text else _STRUCTURE).search(held, at):
            mark, at = match[0], match.end()
            if mark == b"\\":
                if at == len(held):
                    at -= 1
                    break
                at += 1
            elif mark == b'"':
                is_text = not is_text
            elif mark == b"{":
                start = match.start() if not depth else start
                depth += 1
            elif depth:
                depth -= 1
                if not depth:
                    _demand_size(at - start, most_each)
                    yield bytes(held[start:at])
                    del held[:at]
                    at, start = 0, -1
        else:
            at = len(held)
        if not depth:
            del held[:at]
            at = 0
        _demand_size(len(held), most_each)
    if depth:
        raise UploadError("cut", "The file ends in the middle of a conversation.")


def _demand_size(size: int, most: int) -> None:
    if size > most:
        raise UploadError("too_big", f"One conversation has more than {most:,} bytes.")
