"""Type, size and page count of images and PDFs, read from their bytes."""

from __future__ import annotations

import base64
import binascii
import re
import struct
import zlib
from collections.abc import Iterator

from agentweb.emulator import json_codec

_FRAME = re.compile(rb"\xff[\xc0-\xc3\xc5-\xc7\xc9-\xcb\xcd-\xcf]..[\x08\x0c](..)(..)", re.DOTALL)
_PAGE = re.compile(rb"/Type\s*/Page(?!s|\w)")
_PACKED = re.compile(rb"/ObjStm[^>]*>>\s*stream\r?\n")
_MOST = 10_000_000


def decode(data: str) -> bytes | None:
    """Decode strict base64; None for invalid input."""
    try:
        return base64.b64decode(data, validate=True)
    except (ValueError, binascii.Error):
        return None


def image_type(raw: bytes) -> str:
    if raw.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if raw.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if raw[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif"
    return "image/webp" if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP" else ""


def image_size(raw: bytes) -> tuple[int, int] | None:
    """Return width and height in pixels."""
    kind = image_type(raw)
    if kind == "image/png" and len(raw) >= 24:
        return struct.unpack(">II", raw[16:24])
    if kind == "image/gif" and len(raw) >= 10:
        return struct.unpack("<HH", raw[6:10])
    if kind == "image/jpeg" and (found := _FRAME.search(raw)):
        return int.from_bytes(found[2], "big"), int.from_bytes(found[1], "big")
    return _webp_size(raw) if kind == "image/webp" and len(raw) >= 30 else None


def _webp_size(raw: bytes) -> tuple[int, int] | None:
    if raw[12:16] == b"VP8X":
        high, low = raw[27:30], raw[24:27]
        return int.from_bytes(low, "little") + 1, int.from_bytes(high, "little") + 1
    if raw[12:16] == b"VP8L":
        packed = int.from_bytes(raw[21:25], "little")
        return packed % 16_384 + 1, packed // 16_384 % 16_384 + 1
    if raw[12:16] == b"VP8 ":
        width, height = struct.unpack("<HH", raw[26:30])
        return width % 16_384, height % 16_384
    return None


def pdf_pages(raw: bytes) -> int:
    """Count the pages of a PDF, including those in compressed objects; at least 1."""
    return len(_PAGE.findall(raw)) + sum(len(_PAGE.findall(part)) for part in _unpacked(raw)) or 1


def _unpacked(raw: bytes) -> Iterator[bytes]:
    for found in _PACKED.finditer(raw):
        try:
            yield zlib.decompressobj().decompress(raw[found.end() :], _MOST)
        except zlib.error:
            continue


def is_inline(block: json_codec.Object) -> bool:
    """Return whether an image or a document contains its data."""
    source = block.get("source") or {}
    return block["type"] in ("image", "document") and source.get("type") in ("base64", "text")
