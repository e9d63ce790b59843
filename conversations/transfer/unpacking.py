"""The JSON objects in an uploaded file, read in portions and never unpacked to disk.

Of an archive only its own conversations are read. The size of its directory is limited while it is
read, and the bytes and seconds of unpacking are counted over all files, so a small upload that
unpacks to a huge one (a zip bomb) is stopped.
"""

from __future__ import annotations

import gzip
import re
import struct
import time
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO

from django.utils.translation import gettext as _

from conversations.rendering.numbers import write_number
from conversations.rendering.refusal import RefusalError

PORTION = 1 << 18
#: Bytes of an archive's directory, and files of it that are read.
MOST_LISTING, MOST_MEMBERS = 5_000_000, 200
#: The factor by which a conversation may exceed its limit together with its files.
WITH_FILES = 4
#: Seconds for a whole upload; conversations imported until then are kept.
MOST_SECONDS = 240.0
_CONVERSATIONS = re.compile(r"(?:^|/)conversations[^/]*\.jsonl?$", re.IGNORECASE)
_ARCHIVE = b"PK\x03\x04"
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
#: Complete strings and the text between them, up to a brace or an incomplete string.
_RUN = re.compile(rb'[^"{}]*+(?>(?:"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"[^"{}]*+)*)', re.DOTALL)
#: The rest of a string, up to its quotation mark or a backslash that ends the portion.
_TEXT = re.compile(rb'[^"\\]*+(?>(?:\\.[^"\\]*+)*)', re.DOTALL)
#: The data of a file: long, and one string however long it is.
_FILES = re.compile(rb"[A-Za-z0-9+/]{4096,}={0,2}")
#: Exceptions of the standard library for damaged or forged files.
_BROKEN = (
    OSError, EOFError, ValueError, RuntimeError, struct.error, zlib.error, zipfile.BadZipFile,
)  # fmt: skip


class UploadError(RefusalError):
    """The file cannot be read at all, or not any further; the text is for the person."""


class Allowance:
    """The bytes and seconds that one upload has left."""

    def __init__(self, most: int) -> None:
        self._most = self._left = most
        self._until = time.monotonic() + MOST_SECONDS

    def spend(self, size: int) -> None:
        """Count bytes that were read; raises UploadError when the limit or the time is exceeded."""
        self._left -= size
        if self._left < 0:
            words = _("The chats have more than %(most)s bytes.")
            raise UploadError("too_big", words % {"most": write_number(self._most)})
        if time.monotonic() > self._until:
            words = _(
                "Reading was ended after %(seconds)s seconds. Upload the file again to go on: what"
                " was imported is not imported twice."
            )
            raise UploadError("too_long", words % {"seconds": write_number(round(MOST_SECONDS))})

    def portions(self, file: IO[bytes] | gzip.GzipFile) -> Iterator[bytes]:
        while portion := file.read(PORTION):
            self.spend(len(portion))
            yield portion


class _Sparing:
    """A file that refuses to return more bytes at once than an archive's directory may have."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        # zipfile reads the directory in one call, of the size that the archive claims.
        found = self._file.read(MOST_LISTING + 1 if size < 0 else min(size, MOST_LISTING + 1))
        if len(found) > MOST_LISTING or size > MOST_LISTING:
            raise UploadError("too_many", _("The archive has too many files in it."))
        return found


def is_archive(file: IO[bytes]) -> bool:
    start = file.read(4)
    file.seek(0)
    return start == _ARCHIVE


def read_archived(file: IO[bytes], name: str, *, most: int) -> bytes | None:
    """Return the file of a name in an archive, None if there is none; raises UploadError."""
    try:
        with zipfile.ZipFile(_Sparing(file)) as archive:
            named = (each for each in archive.infolist() if each.filename == name)
            member = next(named, None)
            if member is None:
                return None
            _demand_packing([member])
            with archive.open(member) as unpacked:
                found = unpacked.read(most + 1)
    except _BROKEN as error:
        raise _refuse_broken() from error
    if len(found) > most:
        words = _("%(name)s has more than %(most)s bytes.")
        raise UploadError("too_big", words % {"name": name, "most": write_number(most)})
    return found


def _refuse_broken() -> UploadError:
    return UploadError("broken", _("The file cannot be read; it may be damaged."))


def read_objects(file: IO[bytes], *, most: int, most_each: int) -> Iterator[bytes]:
    """Yield each JSON object of a file, an archive or a compressed file; raises UploadError."""
    allowance = Allowance(most)
    try:
        for found in _read_objects(file, allowance, most_each):
            allowance.spend(0)
            yield found
    except _BROKEN as error:
        raise _refuse_broken() from error


def _read_objects(file: IO[bytes], allowance: Allowance, most_each: int) -> Iterator[bytes]:
    start = file.read(4)
    file.seek(0)
    if start == _ARCHIVE:
        yield from _read_archive(file, allowance, most_each)
    elif start[:2] == b"\x1f\x8b":
        with gzip.GzipFile(fileobj=file) as unpacked:
            yield from _split_values(allowance.portions(unpacked), most_each)
    else:
        yield from _split_values(allowance.portions(file), most_each)


def _read_archive(file: IO[bytes], allowance: Allowance, most_each: int) -> Iterator[bytes]:
    with zipfile.ZipFile(_Sparing(file)) as archive:
        members = _list_conversations(archive)
        _demand_plain(members)
        for member in sorted(members, key=lambda each: each.filename):
            with archive.open(member) as unpacked:
                yield from _split_values(allowance.portions(unpacked), most_each)


def _list_conversations(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return the files of conversations that lie in the fewest folders.

    One that lies deeper belongs to what the archive carries, such as the files of a workspace.
    """
    found = [each for each in archive.infolist() if _CONVERSATIONS.search(each.filename)]
    folders = min((each.filename.count("/") for each in found), default=0)
    return [each for each in found if each.filename.count("/") == folders]


def _demand_plain(members: list[zipfile.ZipInfo]) -> None:
    if not members:
        raise UploadError("none", _("The archive has no conversations.json or .jsonl in it."))
    if len(members) > MOST_MEMBERS:
        words = _("The archive has more than %(most)s files of chats in it.")
        raise UploadError("too_many", words % {"most": write_number(MOST_MEMBERS)})
    if len({member.filename for member in members}) < len(members):
        raise UploadError("twice", _("The archive has two files of chats of one name."))
    _demand_packing(members)


def _demand_packing(members: list[zipfile.ZipInfo]) -> None:
    if any(member.compress_type not in _PACKINGS or member.flag_bits & 1 for member in members):
        raise UploadError(
            "packing",
            _(
                "The archive is encrypted or packed in a way that is not read here; use an"
                " ordinary zip file."
            ),
        )


def _split_values(portions: Iterator[bytes], most_each: int) -> Iterator[bytes]:
    """Yield the objects of JSON lines, or of any other text that contains objects."""
    first = next(portions, b"")
    line = first.lstrip()[: first.find(b"\n") + 1 or None].strip()
    read = _split_lines if line.startswith(b"{") and line.endswith(b"}") else _split_braces
    for found in read(_chain(first, portions), most_each):
        files = sum(run.end() - run.start() for run in _FILES.finditer(found))
        _demand_size((len(found) - files) * WITH_FILES, most_each)
        yield found


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _split_lines(portions: Iterator[bytes], most_each: int) -> Iterator[bytes]:
    """Yield each line, so that a malformed one does not affect the others."""
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


def _split_braces(portions: Iterator[bytes], most_each: int) -> Iterator[bytes]:
    """Yield each outermost object, found by its braces; text outside of objects is skipped.

    A run of strings is one match, so nothing written inside them costs a step.
    """
    held, at, depth, is_text = bytearray(), 0, 0, False
    for portion in portions:
        held += portion
        while at < len(held):
            if not depth:
                start = held.find(b"{", at)
                del held[: start if start >= 0 else len(held)]
                at = depth = int(start >= 0)
                continue
            at = _end(_TEXT if is_text else _RUN, held, at)
            mark = held[at : at + 1]
            if not mark or mark == b"\\":
                break
            at += 1
            if mark == b'"':
                is_text = not is_text
            else:
                depth += 1 if mark == b"{" else -1
            if not depth:
                _demand_size(at, most_each)
                yield bytes(held[:at])
        _demand_size(len(held) if depth else 0, most_each)
    if depth:
        raise UploadError("cut", _("The file ends in the middle of a chat."))


def _end(pattern: re.Pattern[bytes], held: bytearray, at: int) -> int:
    match = pattern.match(held, at)
    return match.end() if match else at


def _demand_size(size: int, most: int) -> None:
    """Raise UploadError for an object that is too large even if most of it is files."""
    if size > most * WITH_FILES:
        words = _("One chat has more than %(most)s bytes.")
        raise UploadError("too_big", words % {"most": write_number(most)})
