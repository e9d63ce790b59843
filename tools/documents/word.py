"""The text of a DOCX as Markdown: headings, lists, paragraphs and tables in order.

Read from the elements rather than by python-docx's paragraphs, which leave out content controls and
tracked insertions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BytesIO
from typing import Any

from docx import Document
from docx.oxml import parse_xml
from docx.oxml.ns import qn

from tools.documents.parts import Part, UnknownPartError
from tools.html.tables import format_table

HEADING = re.compile(r"(?:heading|überschrift|titre|titolo|título)\s*([1-9])", re.IGNORECASE)
NUMBERED = re.compile(r"list\s*number", re.IGNORECASE)
LISTED = re.compile(r"list\s*(bullet|paragraph|number)", re.IGNORECASE)
DEEPEST = 6
#: Parts with text of their own, beside the body.
BESIDE = frozenset({"header", "footer", "footnotes", "endnotes", "comments"})
#: What may stand around paragraphs: content controls, marks of other programs, tracked insertions.
AROUND = frozenset(map(qn, ("w:sdt", "w:sdtContent", "w:customXml", "w:ins")))
#: Properties, what a tracked change has deleted or moved elsewhere, and the second copy of a text,
#: for older programs.
SKIPPED = frozenset({
    *map(qn, ("w:pPr", "w:rPr", "w:del", "w:moveFrom")),
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback",
})  # fmt: skip


def read_word(data: bytes, part: str) -> Iterator[Part]:
    """Yield the full text as one part."""
    if part:
        raise UnknownPartError("a DOCX has no parts; offset and limit choose lines of it.")
    document = Document(BytesIO(data))
    styles = {style.style_id: style.name or "" for style in document.styles}
    yield Part("", "\n\n".join(_join_items(_blocks(document.element.body, styles))))
    yield from _read_beside(document, styles)


def _read_beside(document: Any, styles: dict[str, str]) -> Iterator[Part]:
    """Yield what a page shows beside the text: headers, footers, notes and comments, each once."""
    seen = set[tuple[str, str]]()
    for relation in document.part.rels.values():
        kind = relation.reltype.rpartition("/")[2]
        if kind not in BESIDE or relation.is_external:
            continue
        root = parse_xml(relation.target_part.blob)
        # Notes and comments are in an element each; a header has its paragraphs itself.
        items = [root] if kind in ("header", "footer") else list(root)
        texts = ["\n".join(_join_items(_blocks(item, styles))) for item in items]
        text = "\n".join(filter(None, texts))
        if text and (kind, text) not in seen:
            seen.add((kind, text))
            yield Part(kind, text)


def _join_items(blocks: Iterator[tuple[str, bool]]) -> Iterator[str]:
    """Join the items of each list into one block."""
    held: list[str] = []
    for text, is_item in blocks:
        if held and not is_item:
            yield "\n".join(held)
            held = []
        if is_item:
            held.append(text)
        else:
            yield text
    if held:
        yield "\n".join(held)


def _blocks(parent: Any, styles: dict[str, str]) -> Iterator[tuple[str, bool]]:
    for element in parent:
        if element.tag == qn("w:p"):
            text = _text(element).strip()
            if text:
                prefix = _prefix_of(element, styles)
                yield prefix + text, prefix.lstrip().startswith(("- ", "1. "))
        elif element.tag == qn("w:tbl"):
            yield "\n".join(format_table(_table_rows(element))), False
        elif element.tag in AROUND:
            yield from _blocks(element, styles)


def _prefix_of(paragraph: Any, styles: dict[str, str]) -> str:
    properties = paragraph.find(qn("w:pPr"))
    if properties is None:
        return ""
    chosen = properties.find(qn("w:pStyle"))
    style = styles.get(chosen.get(qn("w:val")), "") if chosen is not None else ""
    if found := HEADING.match(style):
        return "#" * min(int(found[1]), DEEPEST) + " "
    if style == "Title":
        return "# "
    numbering = properties.find(qn("w:numPr"))
    if numbering is None and not LISTED.match(style):
        return ""
    level = numbering.find(qn("w:ilvl")) if numbering is not None else None
    depth = min(int(level.get(qn("w:val"), "0")), DEEPEST) if level is not None else 0
    return "  " * depth + ("1. " if NUMBERED.match(style) else "- ")


def _table_rows(table: Any) -> list[list[str]]:
    return [
        [" ".join(_text(cell).split()) for cell in _iterate_outermost(row, qn("w:tc"))]
        for row in _iterate_outermost(table, qn("w:tr"))
    ]


def _iterate_outermost(parent: Any, tag: str) -> Iterator[Any]:
    """Yield the elements of a tag below another, without those within them: of tables in cells."""
    for element in parent:
        if element.tag == tag:
            yield element
        else:
            yield from _iterate_outermost(element, tag)


def _text(element: Any) -> str:
    return "".join(_text_pieces(element))


def _text_pieces(parent: Any) -> Iterator[str]:
    for element in parent:
        match element.tag:
            case tag if tag == qn("w:t"):
                yield element.text or ""
            case tag if tag == qn("w:tab"):
                yield "\t"
            case tag if tag in (qn("w:br"), qn("w:cr")):
                yield "\n"
            case tag if tag == qn("w:noBreakHyphen"):
                yield "-"
            case tag if tag in SKIPPED:
                continue
            case tag:
                yield from _text_pieces(element)
                if tag == qn("w:p"):
                    yield "\n"
