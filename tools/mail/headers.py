"""The header of a message or of a part: a few fields, each bounded before it is decoded.

The header parsers of the standard library take quadratic time on crafted input, so a field is cut
first. What cannot be decoded stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.policy import compat32

from tools.http.charset import decode_bytes

LONGEST_BLOCK = 65_536
#: Bytes within which the header of a message, and of a part, must end.
FIRST_SEARCH, LATER_SEARCH = 2_000_000, 100_000
LONGEST_FIELD = 2_000
FIELD = re.compile(rb"^([!-9;-~]{1,80}):[ \t]*+([^\n]*+\n?(?:[ \t][^\n]*+\n?)*)", re.MULTILINE)
FOLD = re.compile(r"[\r\n]+[ \t]*")


@dataclass(frozen=True, slots=True)
class Header:
    """The first field of each name, in lower case."""

    fields: dict[str, bytes]
    is_cut: bool = False

    def raw(self, name: str) -> str:
        """Return a field on one line, undecoded."""
        data = self.fields.get(name, b"")[:LONGEST_FIELD]
        return FOLD.sub(" ", decode_bytes(data, "")).strip()

    def text(self, name: str) -> str:
        """Return a field on one line, its encoded words decoded."""
        raw = self.raw(name)
        if "=?" not in raw:
            return raw
        try:
            pieces = decode_header(raw)
        except (HeaderParseError, ValueError):
            return raw
        words = [
            piece
            if isinstance(piece, str)
            else decode_bytes(piece, f"charset={charset or 'latin-1'}")
            for piece, charset in pieces
        ]
        return FOLD.sub(" ", "".join(words)).strip()

    @property
    def kind(self) -> Message:
        """The type, disposition and encoding of the part, for the parsers of the library."""
        found: Message = Message(policy=compat32)
        for name in ("content-type", "content-disposition", "content-transfer-encoding"):
            if raw := self.raw(name):
                found[name] = raw
        return found


def parse_header(data: bytes, at: int) -> tuple[Header, int]:
    """Parse the header at an offset; return it and the offset of its body."""
    last, body = _find_end(data, at, FIRST_SEARCH if at == 0 else LATER_SEARCH)
    block = data[at : min(last, at + LONGEST_BLOCK)]
    fields: dict[str, bytes] = {}
    for found in FIELD.finditer(block):
        fields.setdefault(found[1].decode("ascii").lower(), found[2][: 2 * LONGEST_FIELD])
    return Header(fields, is_cut=last - at > LONGEST_BLOCK), body


def _find_end(data: bytes, at: int, most: int) -> tuple[int, int]:
    """Return start and end of the first empty line."""
    for empty in (b"\n", b"\r\n"):
        if data.startswith(empty, at):
            return at, at + len(empty)
    last = body = min(len(data), at + most)
    for mark in (b"\n\r\n", b"\n\n"):
        place = data.find(mark, at, last)
        if place >= 0:
            last, body = place + 1, place + len(mark)
    return last, body
