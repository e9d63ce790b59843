"""Office files as their programs write them: all of their text, and a sentence where none is read.

`tests/data/deck.pptx` was written by python-pptx 1.0.2, whose template PowerPoint made; Word files
and workbooks are written here by python-docx and openpyxl.
"""

from __future__ import annotations

import random
import re
from datetime import datetime
from pathlib import Path

import pytest
from docx import Document
from docx.text.paragraph import Paragraph
from openpyxl import Workbook

from tests.tools import samples
from tools.documents import extract_text
from tools.documents.document_text import read_document
from tools.framework.errors import FileRefusedError, InputError

DECK = (Path(__file__).parents[1] / "data/deck.pptx").read_bytes()
WORDS = ["naïve", "漢字", "Zürich", "rate", "12,5", "%", "<b>", "&", "emoji🙂", "עברית", "don't"]
SLIDES = """\
[slide 1 of 4]
# Quarterly plan

Anna Müller · 漢字

[slide 2 of 4, hidden]
Chart:
- Sales: East 19.2, West 21.4

[slide 3 of 4]
# Aims

Sell more
  in Lyon

Notes: Say this slowly & clearly.

[slide 4 of 4]
# Prices

| Name | Rate |
| --- | --- |
| Acme \\| Co | 600 |

grouped words"""


def test_slides_are_read_in_order_with_tables_charts_groups_and_notes() -> None:
    assert extract_text(DECK, "plan.pptx") == SLIDES
    second = extract_text(DECK, "plan.pptx", part="slides 2-3")
    assert second == SLIDES.partition("\n\n[slide 4")[0].partition("漢字\n\n")[2]
    assert extract_text(DECK, "x", part="4").startswith("[slide 4 of 4]\n# Prices")
    for part in ("5", "0", "3-2", "Aims"):
        with pytest.raises(InputError, match="4 slides"):
            extract_text(DECK, "plan.pptx", part=part)


def choose_words(seed: int) -> list[str]:
    chosen = random.Random(seed)
    return [f"{chosen.choice(WORDS)}-{number}" for number in range(60)]


@pytest.mark.parametrize("seed", range(12))
def test_every_word_that_is_written_is_read(seed: int) -> None:
    words = choose_words(seed)
    document, book = Document(), Workbook()
    document.sections[0].header.paragraphs[0].text = "head of the page"
    document.add_heading(words[0], seed % 4)
    for word in words[1:40]:
        paragraph: Paragraph = document.add_paragraph(word)
        paragraph.add_run(" bold").bold = True
    document.add_comment(paragraph.runs, "a remark", author="Ada")
    table = document.add_table(rows=4, cols=5)
    for place, word in enumerate(words[40:]):
        table.rows[place // 5].cells[place % 5].text = word
        sheet = book.worksheets[-1] if place % 10 else book.create_sheet(f"sheet {place}")
        sheet.append([place, word, place / 4])
    text = read_document(samples.saved(document), "a.docx", "", "")
    assert [word for word in words if word not in text] == []
    assert re.findall(r"-(\d+)\b", text) == [str(number) for number in range(60)]
    assert ("[header]\nhead of the page" in text, "[comments]\na remark" in text) == (True, True)
    cells = read_document(samples.saved(book), "a.xlsx", "", "")
    assert [word for word in words[40:] if word not in cells] == []


def test_a_table_in_a_table_is_read_once() -> None:
    document = Document()
    outer = document.add_table(rows=1, cols=2)
    outer.cell(0, 0).text = "before"
    inner = outer.cell(0, 1).add_table(rows=1, cols=2)
    inner.cell(0, 0).text, inner.cell(0, 1).text = "left", "right"
    text = read_document(samples.saved(document), "a.docx", "", "")
    assert text == "| before | left right |\n| --- | --- |"


def test_a_moment_keeps_its_seconds() -> None:
    texts = ("2026-11-01", "2026-11-01 09:30", "2026-11-01 09:30:07")
    text = extract_text(samples.xlsx({"Log": [[*map(datetime.fromisoformat, texts)]]}), "a.xlsx")
    assert f"| {' | '.join(texts)} |" in text


def test_a_formula_without_a_stored_value_is_read_as_it_is_written() -> None:
    data = samples.xlsx({"Sums": [[1, 2, "=A1+B1"], [3, None, None]]})
    assert "| 1 | 2 | =A1+B1 |" in extract_text(data, "a.xlsx")


def test_macros_are_said_and_nothing_of_them_is_read() -> None:
    data = samples.archive({"word/vbaProject.bin": b"Sub AutoOpen()"}, base=samples.docx())
    text = extract_text(data, "a.docm")
    assert text.endswith("[it has macros; they were neither read nor run]")
    assert "AutoOpen" not in text
    macros = samples.archive({"ppt/vbaProject.bin": b"x"}, base=DECK)
    assert "macros" in extract_text(macros, "a.pptm")
    assert "macros" not in extract_text(macros, "a.pptm", part="1")


OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(1_500)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (OLE + "EncryptedPackage".encode("utf-16-le"), "locked with a password; save it without"),
        (OLE, "old kind; save it as DOCX, XLSX or PPTX"),
        (DECK[:20_000], "its archive is damaged"),
        (samples.archive({"ppt/presentation.xml": b"<x"}, base=DECK), "its XML is damaged"),
        (samples.archive({"ppt/presentation.xml": b"<!DOCTYPE x><x/>"}, base=DECK), "entities"),
        (samples.archive({"ppt/media/a.bin": bytes(50_000_000)}, base=DECK), "far more"),
        (samples.archive({"ppt/slides/slide1.xml": b"<x><x></x>"}, base=DECK), "damaged"),
        (samples.archive({"a.txt": b"x"}), "of archives only DOCX, XLSX and PPTX are read"),
    ],
)  # fmt: skip
def test_what_is_not_read_is_refused_in_a_sentence(data: bytes, words: str) -> None:
    with pytest.raises(FileRefusedError, match=words) as caught:
        extract_text(data, "plan.pptx")
    assert str(caught.value).startswith("'plan.pptx' is ")
    assert str(caught.value).endswith(".")


def test_slides_of_a_damaged_presentation_are_not_followed_outside() -> None:
    relations = b"""<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
    <Relationship Id="rId7" Type="x/slide" Target="file:///etc/passwd" TargetMode="External"/>
    <Relationship Id="rId8" Type="x/slide" Target="../../../etc/passwd"/></Relationships>"""
    data = samples.archive({"ppt/_rels/presentation.xml.rels": relations}, base=DECK)
    assert extract_text(data, "plan.pptx") == ""


def test_a_mail_is_read_with_its_headers_and_the_names_of_what_is_attached() -> None:
    data = (
        b"From: Ada <ada@example.org>\r\nTo: bob@example.org\r\n"
        b"Subject: =?utf-8?q?Gr=C3=B6=C3=9Fe?=\r\n"
        b'MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary="b"\r\n\r\n--b\r\n'
        b"Content-Type: text/html; charset=utf-8\r\n\r\n<p>Hello <b>you</b></p>\r\n--b\r\n"
        b'Content-Type: application/pdf; name="a.pdf"\r\nContent-Disposition: attachment; '
        b'filename="a.pdf"\r\n\r\n%PDF-\r\n--b--\r\n'
    )
    assert extract_text(data, "letter.eml") == (
        "From: Ada <ada@example.org>\nTo: bob@example.org\nSubject: Größe\n"
        "Attachment 1: a.pdf (application/pdf, 5 bytes)\n\nHello you"
    )
