"""The text of documents of each kind."""

from __future__ import annotations

import io
import zipfile
from datetime import date

import pytest

from tests.tools import samples
from tools.documents import extract_text, has_parts
from tools.documents.attached_text import read_attached
from tools.framework.errors import FileRefusedError, InputError


def test_the_pages_of_a_pdf_are_marked() -> None:
    data = samples.pdf("Hello (world)", "", "Café")
    assert extract_text(data, "a.pdf") == (
        "[page 1 of 3]\nHello (world)\n\n[page 2 of 3]\n(no text; an image or an empty page)\n\n"
        "[page 3 of 3]\nCafé"
    )
    assert extract_text(data, "a.pdf", part="3") == "[page 3 of 3]\nCafé"
    assert extract_text(data, "a", part="pages 2-9").startswith("[page 2 of 3]")
    assert extract_text(samples.pdf("x", head=b"\n\n%PDF-1.4\n"), "letter").endswith("x")
    for part in ("4", "0", "3-2", "first"):
        with pytest.raises(InputError, match="3 pages"):
            extract_text(data, "a.pdf", part=part)


def test_a_word_file_keeps_its_structure() -> None:
    assert extract_text(samples.docx(), "cv.docx") == (
        "# Job search\n\n## Criteria\n\nRemote, 500–700 € a day\n\n- first\n- second\n1. one\n\n"
        "| Name | Rate |\n| --- | --- |\n| Acme \\| Co | 600 |\n\nafter the table"
    )
    with pytest.raises(InputError):
        extract_text(samples.docx(), "cv.docx", part="1")


def test_what_is_in_a_content_control_or_inserted_is_read_and_what_went_is_not() -> None:
    w = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    body = (
        f"<w:document {w}><w:body><w:sdt><w:sdtContent><w:p><w:r><w:t>held</w:t></w:r></w:p>"
        "</w:sdtContent></w:sdt><w:p><w:ins><w:r><w:t>new</w:t><w:noBreakHyphen/><w:t>er</w:t></w:r>"
        "</w:ins>"
        "<w:del><w:r><w:delText>old</w:delText></w:r></w:del>"
        "<w:moveFrom><w:r><w:t>elsewhere</w:t></w:r></w:moveFrom></w:p>"
        "<w:customXml><w:p><w:r><w:t>marked</w:t></w:r></w:p></w:customXml></w:body></w:document>"
    )
    data = samples.archive({"word/document.xml": body.encode()}, base=samples.docx())
    assert extract_text(data, "x.docx") == "held\n\nnew-er\n\nmarked"


BOOK = {
    "Prices": [["Name", "Rate", "From"], ["Acme", 600.5, date(2026, 11, 1)], [], ["Beta", True]],
    "Über": [[None, "x"]],
    "Empty": [],
}


def test_each_sheet_of_a_workbook_is_a_table() -> None:
    text = extract_text(samples.xlsx(BOOK), "rates.xlsx")
    assert text == (
        "[sheet Prices, A1:C4]\n| Name | Rate | From |\n| --- | --- | --- |\n"
        "| Acme | 600.5 | 2026-11-01 |\n| Beta | TRUE | |\n\n"
        "[sheet Über, A1:B1]\n| | x |\n| --- | --- |\n\n[sheet Empty]\n(no values)"
    ).replace("| |", "|  |")


def test_a_sheet_or_a_range_is_read_alone() -> None:
    data = samples.xlsx(BOOK)
    assert extract_text(data, "a", part="Über").startswith("[sheet Über, A1:B1]\n")
    ranged = "[sheet Prices, A2:B2]\n| Acme | 600.5 |\n| --- | --- |"
    assert extract_text(data, "a", part="Prices!A2:B2") == ranged
    assert extract_text(data, "a", part="A2:B2") == ranged
    for part in ("Nothing", "Prices!", "Prices!A", "Nothing!A1:B2"):
        with pytest.raises(InputError, match="Prices, Über, Empty"):
            extract_text(data, "a", part=part)


def test_rows_and_columns_beyond_the_limits_are_said_to_be_left_out() -> None:
    book = samples.xlsx({"A": [["x"], ["y"]]})
    sheet = zipfile.ZipFile(io.BytesIO(book)).read("xl/worksheets/sheet1.xml")
    far = sheet.replace(b'r="2"', b'r="50001"').replace(b'r="A2"', b'r="IW50001"')
    long = samples.archive({"xl/worksheets/sheet1.xml": far}, base=book)
    rest = "rows below 50000 and columns after IV are left out, read them as a range"
    assert extract_text(long, "x.xlsx") == f"[sheet A, A1:A1; {rest}]\n| x |\n| --- |"
    ranged = extract_text(long, "x.xlsx", part="A!IW50000:IW50001")
    assert ranged == "[sheet A, IW50000:IW50001]\n| y |\n| --- |"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_separated_values_are_a_table_whatever_separates_them(delimiter: str) -> None:
    rows = [["Name", "Note"], ["Acme", f'"a{delimiter} ""b""\nc"'], ["Über", "1,5"[: 1 + 1]]]
    rows[2][1] = '"1,5"'
    text = "\r\n".join(delimiter.join(row) for row in rows) + "\r\n"
    shown = extract_text(text.encode(), "x.csv")
    inside = f'a{delimiter} "b" c'.replace("|", "\\|").replace("\t ", " ")
    assert shown == f"| Name | Note |\n| --- | --- |\n| Acme | {inside} |\n| Über | 1,5 |\n"


def test_the_bytes_of_old_spreadsheets_are_understood() -> None:
    expected = "| Größe | € |\n| --- | --- |\n| 1 | 2 |\n"
    for charset in ("cp1252", "utf-8", "utf-8-sig", "utf-16"):
        assert extract_text("Größe;€\n1;2\n".encode(charset), "x.csv") == expected
    assert extract_text("Größe;€\n1;2\n".encode(), "x", "text/csv; charset=utf-8") == expected


def test_rows_end_at_line_feeds_alone() -> None:
    expected = "| a | b |\n| --- | --- |\n| 1 | x y |\n| 2 | z |\n"
    assert extract_text("a,b\n1,x\u2028y\n2,z\n".encode(), "x.csv") == expected


def test_a_file_in_another_charset_is_read_as_its_message_had_it() -> None:
    text = "»MENÜ« mit Größe und Länge in den Straßen von Wien\n"
    for data, expected in (
        (text.encode("cp1252"), text),
        (text.encode() + b"\xfc", text + "\ufffd"),
    ):
        assert extract_text(data, "x.txt") == read_attached(data, "x.txt", 10_000)[0] == expected


def test_what_is_no_table_stays_as_it_is() -> None:
    assert extract_text(b"one\ntwo\n", "x.csv") == "one\ntwo\n"
    assert extract_text(b"", "x.csv") == ""
    long = b"a,b\n" + b"x" * 200_000 + b",y\n"
    assert extract_text(long, "x.csv") == long.decode()


def test_html_is_readable_and_text_is_itself() -> None:
    page = b"<title>T</title><h1>Head</h1><p>a <b>b</b>"
    assert (
        extract_text(page, "x.html")
        == extract_text(page, "x", "text/html")
        == "Title: T\n\n# Head\n\na b"
    )
    assert extract_text(page, "x.txt") == page.decode()
    assert extract_text("ä".encode("utf-16"), "x.txt") == "ä"
    assert not has_parts(page, "x.html")
    assert has_parts(samples.pdf("x"), "x")


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n\0\0", b"\xff\xfea", b"\xff\xfe" * 9, b"\0"])
def test_what_is_no_text_is_refused(data: bytes) -> None:
    with pytest.raises(FileRefusedError, match="binary"):
        extract_text(data, "x.txt")
