"""The parts of a `multipart/form-data` body."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agentweb.emulator.errors import Invalid

_BOUNDARY = re.compile(r'multipart/form-data;.*boundary="?([^";]+)"?', re.IGNORECASE)
_NAME = re.compile(r'[; ]name="([^"]*)"')
_FILENAME = re.compile(r'filename="([^"]*)"')
_TYPE = re.compile(r"^content-type:\s*([^;\r\n]+)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    filename: str
    #: Empty if the part does not state it.
    media_type: str
    content: bytes


def read_parts(content_type: str, body: bytes) -> list[Part]:
    found = _BOUNDARY.match(content_type)
    if found is None:
        raise Invalid("Expected a multipart/form-data body with a boundary")
    fence = b"--" + found[1].encode()
    return [_part(raw) for raw in (b"\r\n" + body).split(b"\r\n" + fence)[1:-1]]


def _part(raw: bytes) -> Part:
    head, _, content = raw.removeprefix(b"\r\n").partition(b"\r\n\r\n")
    lines = head.decode("utf-8", "replace")
    name, filename, kind = (p.search(lines) for p in (_NAME, _FILENAME, _TYPE))
    return Part(
        name[1] if name else "",
        filename[1] if filename else "",
        kind[1].strip() if kind else "",
        content,
    )
