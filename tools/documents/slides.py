"""The text of a PPTX, slide by slide: titles, texts, tables, diagrams, charts and notes.

Read from the elements of its XML, in the order in which the presentation shows its slides; the
archive has been checked (`office.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BytesIO
from itertools import zip_longest
from posixpath import dirname, join, normpath
from typing import Any
from zipfile import ZipFile

from defusedxml.ElementTree import fromstring

from tools.documents.parts import Part, UnknownPartError
from tools.html.tables import format_table

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_VALUE = f"{_C}v"
#: Holds a second copy of a shape, for older programs; skipped.
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_NUMBERS = re.compile(r"(?:slides? )?(\d{1,6})(?:\s*-\s*(\d{1,6}))?", re.IGNORECASE)
#: Placeholders that repeat what every slide has.
_SKIPPED = frozenset({"sldNum", "dt", "ftr", "hdr"})
_TITLES = frozenset({"title", "ctrTitle"})


def read_slides(data: bytes, part: str) -> Iterator[Part]:
    """Yield the requested slides, or all."""
    with ZipFile(BytesIO(data)) as archive:
        names = _list_slides(archive)
        first, last = _parse_numbers(part, len(names))
        for number in range(first, last + 1):
            yield _read_slide(archive, names[number - 1], f"slide {number} of {len(names)}")


def _parse_numbers(part: str, count: int) -> tuple[int, int]:
    if not part.strip():
        return 1, count
    found = _NUMBERS.fullmatch(part.strip())
    first = int(found[1]) if found else 0
    last = int(found[2] or found[1]) if found else 0
    if not 1 <= first <= last or first > count:
        raise UnknownPartError(f"it has {count:,} slides; part is like 3 or 2-5.")
    return first, min(last, count)


def _list_slides(archive: ZipFile) -> list[str]:
    """Return the names of the slides' parts in the order of the presentation."""
    root = "ppt/presentation.xml"
    parts = {key: name for key, _, name in _list_relations(archive, root)}
    listed = fromstring(archive.read(root)).iter(f"{_P}sldId")
    keys = (one.get(f"{_R}id", "") for one in listed)
    return [parts[key] for key in keys if key in parts]


def _list_relations(archive: ZipFile, name: str) -> Iterator[tuple[str, str, str]]:
    """Yield id, type and target of the parts in the archive that a part refers to."""
    folder, _, file = name.rpartition("/")
    held = f"{folder}/_rels/{file}.rels"
    if held not in archive.namelist():
        return
    for one in fromstring(archive.read(held)):
        target = one.get("Target", "")
        place = target[1:] if target.startswith("/") else normpath(join(dirname(name), target))
        if one.get("TargetMode") != "External" and place in archive.namelist():
            yield one.get("Id", ""), one.get("Type", "").rpartition("/")[2], place


def _read_slide(archive: ZipFile, name: str, title: str) -> Part:
    root = fromstring(archive.read(name))
    texts = list(_iterate_blocks(root))
    for _, kind, place in _list_relations(archive, name):
        if kind == "diagramData":
            texts += _read_diagram(fromstring(archive.read(place)))
        elif kind == "chart":
            texts += _read_chart(fromstring(archive.read(place)))
        elif kind == "notesSlide":
            notes = list(_iterate_blocks(fromstring(archive.read(place))))
            texts += [f"Notes: {text}" for text in ["\n\n".join(notes)] if text]
    hidden = ", hidden" if root.get("show") in ("0", "false") else ""
    return Part(f"{title}{hidden}", "\n\n".join(texts) or "(no text; a picture or an empty slide)")


def _iterate_blocks(parent: Any) -> Iterator[str]:
    """Yield the texts and tables of the shapes below an element, groups included."""
    for element in parent:
        if element.tag == _FALLBACK:
            continue
        if element.tag == f"{_P}sp":
            yield from _read_shape(element)
        elif element.tag == f"{_A}tbl":
            yield "\n".join(format_table(_read_rows(element)))
        else:
            yield from _iterate_blocks(element)


def _read_shape(shape: Any) -> Iterator[str]:
    placed = shape.find(f"{_P}nvSpPr/{_P}nvPr/{_P}ph")
    kind = placed.get("type", "body") if placed is not None else ""
    if kind in _SKIPPED:
        return
    lines = [line for line in map(_read_paragraph, shape.iter(f"{_A}p")) if line.strip()]
    if lines:
        yield "# " + " ".join(" ".join(lines).split()) if kind in _TITLES else "\n".join(lines)


def _read_paragraph(paragraph: Any) -> str:
    properties = paragraph.find(f"{_A}pPr")
    level = properties.get("lvl", "0") if properties is not None else "0"
    depth = min(int(level), 8) if level.isdecimal() else 0
    return "  " * depth + "".join(map(_read_piece, paragraph))


def _read_piece(element: Any) -> str:
    if element.tag == f"{_A}br":
        return "\n"
    return "".join(text.text or "" for text in element.iter(f"{_A}t"))


def _read_rows(table: Any) -> list[list[str]]:
    return [
        [
            " ".join(" ".join(map(_read_paragraph, cell.iter(f"{_A}p"))).split())
            for cell in row.iter(f"{_A}tc")
        ]
        for row in table.iter(f"{_A}tr")
    ]


def _read_diagram(root: Any) -> list[str]:
    points = (_read_words(point) for point in root.iter(f"{_DIAGRAM}pt"))
    lines = [f"- {words}" for words in points if words]
    return ["\n".join(lines)] if lines else []


def _read_words(point: Any) -> str:
    return " ".join(" ".join(map(_read_paragraph, point.iter(f"{_A}p"))).split())


def _read_chart(root: Any) -> list[str]:
    """Return the values of a chart, a line for each series."""
    lines = []
    for series in root.iter(f"{_C}ser"):
        name, places, values = (
            [value.text or "" for one in series.findall(f"{_C}{tag}") for value in one.iter(_VALUE)]
            for tag in ("tx", "cat", "val")
        )
        pairs = (" ".join(filter(None, pair)) for pair in zip_longest(places, values, fillvalue=""))
        lines.append(f"- {' '.join(name) or 'series'}: {', '.join(pairs)}")
    return ["\n".join(["Chart:", *lines])] if lines else []
