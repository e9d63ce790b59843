"""A message split into its parts, in one pass over its bytes.

Used instead of the email package's parser, which compares every line with every open boundary, so
that a thousand nested parts take minutes. Here a line that begins with two dashes is looked up
among the open boundaries, so the cost is linear in the bytes, however many parts there are. The
number and depth of parts are bounded; those beyond are not opened, and a note says so.
"""

from __future__ import annotations

import binascii
import quopri
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from tools.mail.headers import Header, parse_header

MOST_PARTS = 500
MOST_HEADERS = 2_000
DEEPEST = 20
DASHES = re.compile(rb"^--([^\r\n]{1,200})\r?$", re.MULTILINE)
NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/=]+")
BODIES = ("text/plain", "text/html")
#: The name of an attachment whose name cannot be decoded.
UNREADABLE = "unreadable name"


@dataclass(frozen=True, slots=True)
class Part:
    header: Header
    content_type: str
    raw: bytes
    #: number of the nearest multipart/alternative around it; 0 for none
    alternative: int = 0
    #: the start of an enclosed message: `header` is that of the message, and there is no content
    is_enclosed: bool = False

    @property
    def data(self) -> bytes:
        """The content with its transfer encoding decoded, as far as possible."""
        encoding = self.header.raw("content-transfer-encoding").lower()
        if encoding == "base64":
            plain = NOT_BASE64.sub(b"", self.raw).partition(b"=")[0]
            plain = plain[:-1] if len(plain) % 4 == 1 else plain
            return binascii.a2b_base64(plain + b"=" * (-len(plain) % 4))
        if encoding == "quoted-printable":
            return quopri.decodestring(self.raw)
        return self.raw

    @property
    def file_name(self) -> str:
        try:
            return (self.header.kind.get_filename("") or "").strip()[:255]
        except ValueError:
            # The declared charset is not a charset: idna, undefined, or a name with a NUL.
            return UNREADABLE

    @property
    def is_attachment(self) -> bool:
        if self.is_enclosed:
            return False
        is_marked = self.header.raw("content-disposition").lower().startswith("attachment")
        return is_marked or bool(self.file_name) or self.content_type not in BODIES


@dataclass(slots=True)
class Parts:
    """The parts of a message that have content, in order."""

    header: Header
    parts: list[Part] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Level(NamedTuple):
    boundary: bytes
    alternative: int


class Delimiter(NamedTuple):
    start: int
    end: int
    level: int
    is_close: bool


def split_parts(data: bytes) -> Parts:
    """Split a message, which may be cut off anywhere."""
    head, _ = parse_header(data, 0)
    found, levels = Parts(head), list[Level]()
    at, alternatives = 0, 0
    for _ in range(MOST_HEADERS):
        head, body = parse_header(data, at)
        content_type = head.kind.get_content_type()
        boundary = _find_boundary(head)
        around = levels[-1].alternative if levels else 0
        if content_type.startswith("multipart/") and boundary and len(levels) < DEEPEST:
            is_choice = content_type == "multipart/alternative"
            alternatives += is_choice
            levels.append(Level(boundary, alternatives if is_choice else around))
            following = _find_delimiter(data, body, levels)
        elif content_type == "message/rfc822" and not _is_marked_attachment(head):
            enclosed, _ = parse_header(data, body)
            found.parts.append(Part(enclosed, content_type, b"", is_enclosed=True))
            at = body
            if len(found.parts) < MOST_PARTS:
                continue
            break
        else:
            following = _find_delimiter(data, body, levels)
            _note_malformed(found, content_type, boundary)
            raw = data[body : following.start if following else len(data)]
            shown = "text/plain" if _lacks_boundary(content_type, boundary) else content_type
            found.parts.append(Part(head, shown, raw, around))
        while following is not None:
            del levels[following.level + (not following.is_close) :]
            if not following.is_close:
                break
            following = _find_delimiter(data, following.end, levels)
        if following is None:
            return found
        at = following.end
        if len(found.parts) >= MOST_PARTS:
            break
    found.notes.append(f"It has too many parts; only the first {len(found.parts)} were read.")
    return found


def _find_delimiter(data: bytes, at: int, levels: list[Level]) -> Delimiter | None:
    """Return the next line that is one of the open boundaries."""
    opened = {level.boundary: number for number, level in enumerate(levels)}
    for found in DASHES.finditer(data, at) if opened else ():
        text = found[1].rstrip()
        is_close = text not in opened and text.endswith(b"--")
        level = opened.get(text[:-2] if is_close else text)
        if level is not None:
            start = found.start() - (2 if data[found.start() - 2 : found.start()] == b"\r\n" else 1)
            end = data.find(b"\n", found.end())
            return Delimiter(max(start, at), end + 1 or len(data), level, is_close)
    return None


def _find_boundary(head: Header) -> bytes:
    try:
        value = head.kind.get_boundary("")
    except ValueError:
        # The declared charset is not a charset.
        return b""
    return str(value).rstrip().encode("latin-1", errors="replace")[:200]


def _is_marked_attachment(head: Header) -> bool:
    return head.raw("content-disposition").lower().startswith("attachment")


def _lacks_boundary(content_type: str, boundary: bytes) -> bool:
    return content_type.startswith("multipart/") and not boundary


def _note_malformed(found: Parts, content_type: str, boundary: bytes) -> None:
    if not content_type.startswith("multipart/"):
        return
    note = (
        f"Parts nested deeper than {DEEPEST} levels are left closed."
        if boundary
        else "It says that it has parts but not where they end; it is shown as one text."
    )
    if note not in found.notes:
        found.notes.append(note)
