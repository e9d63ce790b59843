"""Read the type and the size of an image from its head; images are never decoded."""

from __future__ import annotations

import re
import struct

#: The first bytes of each type that the API accepts.
_TYPES = (
    ("image/png", re.compile(rb"\x89PNG\r\n\x1a\n")),
    ("image/jpeg", re.compile(rb"\xff\xd8\xff")),
    ("image/gif", re.compile(rb"GIF8[79]a")),
    ("image/webp", re.compile(rb"RIFF.{4}WEBP", re.DOTALL)),
)
TYPES = tuple(name for name, _ in _TYPES)


def detect_media_type(head: bytes) -> str:
    """Return the type that the bytes show; "" when it is none of these."""
    return next((name for name, start in _TYPES if start.match(head)), "")


def read_size(head: bytes) -> tuple[int, int] | None:
    """Return width and height; None when the head does not contain them."""
    match detect_media_type(head):
        case "image/png" if head[12:16] == b"IHDR" and len(head) >= 24:
            return struct.unpack(">II", head[16:24])
        case "image/gif" if len(head) >= 10:
            return struct.unpack("<HH", head[6:10])
        case "image/jpeg":
            return _read_jpeg_size(head)
        case "image/webp" if len(head) >= 30:
            return _read_webp_size(head)
        case _:
            return None


def _read_jpeg_size(head: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 < len(head) and head[at] == 0xFF:
        marker, length = head[at + 1], int.from_bytes(head[at + 2 : at + 4], "big")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", head[at + 5 : at + 9])
            return width, height
        # A fill byte before a marker has no length.
        at += 1 if marker == 0xFF else 2 + max(length, 1)
    return None


def _read_webp_size(head: bytes) -> tuple[int, int] | None:
    match head[12:16]:
        case b"VP8X":
            width, height = head[24:27], head[27:30]
            return 1 + int.from_bytes(width, "little"), 1 + int.from_bytes(height, "little")
        case b"VP8L" if head[20] == 0x2F:
            bits = int.from_bytes(head[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 " if head[23:26] == b"\x9d\x01\x2a":
            width, height = struct.unpack("<HH", head[26:30])
            return width & 0x3FFF, height & 0x3FFF
        case _:
            return None
