"""The kind of a document: from its first bytes; from name or content type if these are unclear."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from tools.framework.clean_text import quote
from tools.framework.errors import LockedFileError, OldFormatError, OutlookMailError

Kind: TypeAlias = Literal["pdf", "office", "csv", "html", "mail", "text"]
#: Kinds whose bytes are not their text, and which have pages or sheets.
WITH_PARTS = frozenset({"pdf", "office"})

#: Bytes within which a PDF begins; those before may come from a mail program or printer.
SNIFFED = 1_024
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
#: The entry of such a file that holds an Office file under a password.
SEALED = "EncryptedPackage".encode("utf-16-le")
CSV = re.compile(r"\.(csv|tsv|tab)$", re.IGNORECASE)
HTML = re.compile(r"\.x?html?$", re.IGNORECASE)
MAIL = re.compile(r"\.eml$", re.IGNORECASE)
OUTLOOK = re.compile(r"\.(msg|oft)$", re.IGNORECASE)
CSV_TYPES = frozenset({"text/csv", "text/tab-separated-values", "application/csv"})
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})


def detect_kind(data: bytes, name: str, content_type: str) -> Kind:
    """Return the kind of a document; raises FileRefusedError for what must be saved anew first."""
    type_ = content_type.partition(";")[0].strip().lower()
    # Before the others, because a mail may have a PDF in its first bytes.
    if type_ == "message/rfc822" or MAIL.search(name):
        return "mail"
    if has_packed_text(data):
        return "pdf" if b"%PDF-" in data[:SNIFFED] else "office"
    if data.startswith(OLE):
        if SEALED in data:
            raise LockedFileError(
                f"{quote(name)} is locked with a password; save it without one first."
            )
        if OUTLOOK.search(name):
            raise OutlookMailError(f"{quote(name)} is a mail of Outlook; save it as EML first.")
        raise OldFormatError(
            f"{quote(name)} is an Office file of an old kind; save it as DOCX, XLSX or PPTX first."
        )
    if type_ in CSV_TYPES or CSV.search(name):
        return "csv"
    if type_ in HTML_TYPES or HTML.search(name):
        return "html"
    return "text"


def has_packed_text(data: bytes) -> bool:
    """Tell whether this begins like a PDF or an Office file."""
    return b"%PDF-" in data[:SNIFFED] or data.startswith(b"PK\x03\x04")
