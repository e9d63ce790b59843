"""Documents for the readers: made by their libraries, PDFs by hand."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from io import BytesIO

from docx import Document
from openpyxl import Workbook


def pdf(*pages: str, head: bytes = b"%PDF-1.4\n") -> bytes:
    """Write a PDF with one line of text on each page."""
    kids = " ".join(f"{4 + 2 * at} 0 R" for at in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for at, text in enumerate(pages):
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300]"
            f" /Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * at} 0 R >>"
        )
        shown = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
        stream = f"BT /F1 12 Tf 20 200 Td ({shown}) Tj ET" if text else ""
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    return assembled(objects, head)


def assembled(objects: list[str], head: bytes = b"%PDF-1.4\n") -> bytes:
    data, places = bytearray(head), []
    for number, text in enumerate(objects, start=1):
        places.append(len(data))
        data += f"{number} 0 obj\n{text}\nendobj\n".encode("cp1252")
    start = len(data)
    data += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    for place in places:
        data += f"{place:010} 00000 n \n".encode()
    data += f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n".encode()
    return bytes(data + b"%%EOF\n")


def docx() -> bytes:
    document = Document()
    document.add_heading("Job search", 0)
    document.add_heading("Criteria", 2)
    document.add_paragraph("Remote, 500–700 € a day")
    document.add_paragraph("first", style="List Bullet")
    document.add_paragraph("second", style="List Bullet")
    document.add_paragraph("one", style="List Number")
    table = document.add_table(rows=2, cols=2)
    for row, cells in zip(table.rows, [("Name", "Rate"), ("Acme | Co", "600")], strict=True):
        for cell, text in zip(row.cells, cells, strict=True):
            cell.text = text
    document.add_paragraph("after the table")
    return saved(document)


def xlsx(sheets: Mapping[str, list[list[object]]]) -> bytes:
    book = Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    return saved(book)


def saved(document: object) -> bytes:
    out = BytesIO()
    document.save(out)  # type: ignore[attr-defined]
    return out.getvalue()


def archive(members: Mapping[str, bytes], *, base: bytes = b"") -> bytes:
    """Make an archive, or one like another with members replaced."""
    out = BytesIO()
    held: dict[str, bytes] = {}
    if base:
        with zipfile.ZipFile(BytesIO(base)) as old:
            held = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name, data in (held | dict(members)).items():
            new.writestr(name, data)
    return out.getvalue()
