"""Office files: the archive is checked before anything is unpacked.

Sizes, counts and compression ratios are read from the archive's directory; unpacking never exceeds
the sizes stated there. No XML part may have a DOCTYPE, so there are no entities to expand or fetch.
Embedded files, such as pictures or other archives, are never opened.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from io import BytesIO
from itertools import chain
from zipfile import BadZipFile, ZipFile, ZipInfo

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import ParseError, iterparse

from tools.documents.parts import Part, RefusedError

DIRECTORY_ENTRY = b"PK\x01\x02"
MOST_ENTRIES = 5_000
MOST_UNPACKED = 120_000_000
#: highest compression ratio of a part larger than `SMALL` bytes
MOST_RATIO = 200
SMALL = 1_000_000
_MACROS = Part("it has macros; they were neither read nor run", "")


def read_office(data: bytes, part: str) -> Iterator[Part]:
    """Check the archive, then read it by its kind."""
    if data.count(DIRECTORY_ENTRY) > MOST_ENTRIES:
        raise RefusedError(f"its archive has more than {MOST_ENTRIES:,} entries")
    try:
        with ZipFile(BytesIO(data)) as archive:
            names = _check_entries(archive)
            _check_xml(archive, names)
    except BadZipFile as error:
        raise RefusedError("its archive is damaged") from error
    parts = _choose_reader(names)(data, part)
    return chain(parts, [_MACROS]) if any(map(_is_macro, names)) and not part else parts


def _choose_reader(names: frozenset[str]) -> Callable[[bytes, str], Iterator[Part]]:
    if "word/document.xml" in names:
        from tools.documents.word import read_word

        return read_word
    if "xl/workbook.xml" in names:
        from tools.documents.workbook import read_workbook

        return read_workbook
    if "ppt/presentation.xml" in names:
        from tools.documents.slides import read_slides

        return read_slides
    raise RefusedError("it is an archive; of archives only DOCX, XLSX and PPTX are read")


def _is_macro(name: str) -> bool:
    return name.lower().endswith("vbaproject.bin")


def _check_entries(archive: ZipFile) -> frozenset[str]:
    entries = archive.infolist()
    names = frozenset(entry.filename for entry in entries)
    if len(entries) > MOST_ENTRIES or len(names) < len(entries):
        raise RefusedError("its archive has too many entries, or two of one name")
    if sum(entry.file_size for entry in entries) > MOST_UNPACKED:
        raise RefusedError(f"it would unpack to more than {MOST_UNPACKED:,} bytes")
    for entry in entries:
        _check_entry(entry)
    return names


def _check_entry(entry: ZipInfo) -> None:
    parts = entry.filename.split("/")
    if entry.filename.startswith("/") or ".." in parts or "\\" in entry.filename:
        raise RefusedError("its archive has an entry that leads outside")
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise RefusedError("its archive has a link in it")
    if entry.flag_bits & 1:
        raise RefusedError("it is encrypted; save it without a password first")
    if entry.file_size > max(SMALL, MOST_RATIO * entry.compress_size):
        raise RefusedError("a part of it unpacks to far more than it should")


def _check_xml(archive: ZipFile, names: frozenset[str]) -> None:
    """Refuse an XML part with a DOCTYPE; it can only precede the first element."""
    for name in sorted(names):
        if name.lower().endswith((".xml", ".rels", ".vml")):
            with archive.open(name) as part:
                try:
                    next(iter(iterparse(part, events=("start",), forbid_dtd=True)), None)
                except DefusedXmlException as error:
                    raise RefusedError("its XML declares entities or a document type") from error
                except ParseError as error:
                    raise RefusedError("its XML is damaged") from error
