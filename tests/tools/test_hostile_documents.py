"""Table S61: what a document may cost at most."""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib

import pytest

from tests.tools import samples
from tools.documents import document_text, extract_text, parts
from tools.framework.errors import FileRefusedError, ToolError

LAUGHS = (
    b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha">'
    + b"".join(b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 10))
    + b"]><w:document>&a9;</w:document>"
)
OUTSIDE = b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///proc/self/environ">]><x>&a;</x>'


def refused(data: bytes, name: str = "x.docx") -> str:
    with pytest.raises(FileRefusedError) as error:
        extract_text(data, name)
    return str(error.value)


@pytest.mark.parametrize("part", ["word/document.xml", "word/styles.xml", "[Content_Types].xml"])
@pytest.mark.parametrize("xml", [LAUGHS, OUTSIDE, LAUGHS.decode().encode("utf-16")])
def test_xml_that_declares_entities_is_refused_in_every_part(part: str, xml: bytes) -> None:
    assert "entities" in refused(samples.archive({part: xml}, base=samples.docx()))


def test_entities_in_a_workbook_are_refused() -> None:
    book = samples.xlsx({"A": [["x"]]})
    assert "entities" in refused(samples.archive({"xl/workbook.xml": LAUGHS}, base=book))


def test_what_unpacks_to_too_much_is_refused_before_it_is_unpacked() -> None:
    bomb = samples.archive({"word/media/a.bin": b"\0" * 50_000_000}, base=samples.docx())
    assert len(bomb) < 200_000
    assert "unpacks to far more" in refused(bomb)
    many = {f"word/media/{n}.bin": os.urandom(200_000) * 5 for n in range(130)}
    with pytest.raises(FileRefusedError, match="120,000,000"):
        extract_text(samples.archive(many, base=samples.docx()), "x.docx")


def test_too_many_entries_are_refused() -> None:
    data = samples.archive({f"word/{n}": b"" for n in range(5_001)}, base=samples.docx())
    assert "5,000 entries" in refused(data)


def entry(name: str, *, link: bool = False, flags: int = 0) -> bytes:
    out = io.BytesIO(samples.docx())
    with zipfile.ZipFile(out, "a") as archive:
        info = zipfile.ZipInfo(name)
        if link:
            info.external_attr = 0o120777 << 16
        archive.writestr(info, b"/etc/passwd")
    data = bytearray(out.getvalue())
    if flags:
        at = data.rfind(b"PK\x01\x02")
        data[at + 8 : at + 10] = struct.pack("<H", flags)
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (entry("../../x"), "leads outside"),
        (entry("/etc/x"), "leads outside"),
        (entry("a\\..\\x"), "leads outside"),
        (entry("word/x", link=True), "a link"),
        (entry("word/x", flags=1), "encrypted"),
    ],
)
def test_a_hostile_entry_is_refused(data: bytes, words: str) -> None:
    assert words in refused(data)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_entries_of_one_name_are_refused() -> None:
    out = io.BytesIO(samples.docx())
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr("word/document.xml", b"<x/>")
    assert "two of one name" in refused(out.getvalue())


def test_an_archive_in_an_archive_is_not_opened_and_an_archive_is_no_document() -> None:
    inner = samples.archive({"x": b"\0" * 1_000_000})
    data = samples.archive({"word/embeddings/a.zip": inner}, base=samples.docx())
    assert extract_text(data, "x.docx").startswith("# Job search")
    assert "of archives only DOCX" in refused(samples.archive({"a.zip": inner}), "x.zip")


def test_a_picture_of_sixty_thousand_pixels_is_never_decoded() -> None:
    head = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + head
    png = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk
    png += struct.pack(">I", zlib.crc32(chunk))
    data = samples.archive({"word/media/image1.png": png}, base=samples.docx())
    assert extract_text(data, "x.docx").startswith("# Job search")
    image = (
        "<< /Type /XObject /Subtype /Image /Width 60000 /Height 60000 /ColorSpace /DeviceRGB"
        " /BitsPerComponent 8 /Filter /FlateDecode /Length 0 >>\nstream\n\nendstream"
    )
    page = (
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9]"
        " /Resources << /XObject << /I 4 0 R >> >> /Contents 5 0 R >>"
    )
    pdf = samples.assembled([
        "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", page,
        image, "<< /Length 5 >>\nstream\n/I Do\nendstream",
    ])  # fmt: skip
    assert "no text" in extract_text(pdf, "x.pdf")


def test_a_locked_pdf_is_refused_and_one_with_an_empty_password_is_read() -> None:
    from pypdf import PdfReader, PdfWriter

    for user, algorithm in (("secret", "AES-256"), ("", "AES-128"), ("", "RC4-128")):
        writer = PdfWriter(clone_from=PdfReader(io.BytesIO(samples.pdf("Hello"))))
        writer.encrypt(user, "owner", algorithm=algorithm)
        out = io.BytesIO()
        writer.write(out)
        if user:
            assert "encrypted" in refused(out.getvalue(), "x.pdf")
        else:
            assert extract_text(out.getvalue(), "x.pdf") == "[page 1 of 1]\nHello"


def test_pages_that_are_their_own_children_end() -> None:
    data = samples.assembled([
        "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 >>",
    ])  # fmt: skip
    assert "damaged" in refused(data, "x.pdf") or "limits" in refused(data, "x.pdf")


def test_a_stream_that_unpacks_to_gigabytes_ends() -> None:
    packed = zlib.compress(b" " * 200_000_000, 9).decode("latin-1")
    data = samples.pdf("x")
    stream = f"<< /Length {len(packed)} /Filter /FlateDecode >>\nstream\n".encode()
    stream += packed.encode("latin-1") + b"\nendstream"
    start = data.index(b"5 0 obj\n") + 8
    end = data.index(b"\nendobj", start)
    with pytest.raises(ToolError):
        extract_text(data[:start] + stream + data[end:], "x.pdf")


@pytest.mark.parametrize("cut", [10, 400, 900])
def test_a_broken_document_is_refused_by_name(cut: int) -> None:
    assert refused(b"%PDF-1.7\n" + os.urandom(2_000), "letter.pdf").startswith("'letter.pdf'")
    for data in (samples.docx(), samples.xlsx({"A": [["x"]]})):
        assert "letter" in refused(data[:-cut], "letter")
        broken = samples.archive({"word/document.xml": b"<a><b></a>"}, base=data)
        assert "damaged" in refused(broken, "letter") or "lacks" in refused(broken, "letter")


def test_office_files_of_old_are_named_as_such() -> None:
    assert "old kind" in refused(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "x.xls")


def test_a_sheet_that_claims_to_be_endless_is_read_as_far_as_it_goes() -> None:
    book = samples.xlsx({"A": [["x"]]})
    sheet = zipfile.ZipFile(io.BytesIO(book)).read("xl/worksheets/sheet1.xml")
    huge = sheet.replace(b'ref="A1"', b'ref="A1:XFD1048576"')
    data = samples.archive({"xl/worksheets/sheet1.xml": huge}, base=book)
    assert extract_text(data, "x.xlsx") == "[sheet A, A1:A1]\n| x |\n| --- |"
    far = sheet.replace(b'r="1"', b'r="1048576"').replace(b'r="A1"', b'r="A1048576"')
    data = samples.archive({"xl/worksheets/sheet1.xml": far}, base=book)
    assert "no values" in extract_text(data, "x.xlsx")


def test_text_and_time_are_bounded_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = iter([parts.Part("a", "x" * 3_000_000), parts.Part("b", "y" * 3_000_000)])
    taken = document_text.collect_parts(pieces)
    assert sum(len(part.text) for part in taken) == 4_000_000
    assert "cut after 4,000,000" in taken[-1].title
    monkeypatch.setattr(document_text, "SOFT", -1.0)
    taken = document_text.collect_parts(iter([parts.Part("a", "x"), parts.Part("b", "y")]))
    assert [part.title for part in taken] == [
        "a", "reading was stopped here; ask for a later part by name",
    ]  # fmt: skip
