"""Small valid images and PDFs, made without a library."""

from __future__ import annotations

import struct
import zlib


def png(width: int = 64, height: int = 48, colour: tuple[int, int, int] = (11, 107, 82)) -> bytes:
    """Make a valid PNG of one colour with a lighter half, so that it is visible."""
    light = bytes(min(255, part + 90) for part in colour)
    half = width // 2
    row = b"\0" + bytes(colour) * half + light * (width - half)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    packed = zlib.compress(row * height, 9)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", head)
        + _chunk(b"IDAT", packed)
        + _chunk(b"IEND", b"")
    )


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def gif(width: int = 2, height: int = 2) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\x80\0\0" + b"\0" * 6 + b";"


def jpeg(width: int = 320, height: int = 200, *, before: bytes = b"") -> bytes:
    """Make the header of a JPEG; `before` are segments that a camera writes first."""
    frame = (
        b"\xff\xc0\x00\x11\x08" + struct.pack(">HH", height, width) + b"\x03" + b"\x01\x11\0" * 3
    )
    return (
        b"\xff\xd8\xff\xe0\x00\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0" + before + frame + b"\xff\xd9"
    )


def webp(kind: bytes = b"VP8 ", width: int = 30, height: int = 20) -> bytes:
    match kind:
        case b"VP8X":
            head = (
                b"\0\0\0\0" + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
            )
        case b"VP8L":
            head = b"\x2f" + (width - 1 | (height - 1) << 14).to_bytes(4, "little") + b"\0" * 8
        case _:
            head = b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height)
    body = b"WEBP" + kind + struct.pack("<I", len(head)) + head.ljust(20, b"\0")
    return b"RIFF" + struct.pack("<I", len(body)) + body


def pdf(pages: int = 1, words: str = "Hello", *, packed: bool = False) -> bytes:
    """Make a PDF whose pages are plain objects, or `packed` in a stream, as in newer files."""
    kids = " ".join(f"{number} 0 R" for number in range(3, 3 + pages))
    leaves = [f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 100] >> % {words}"] * pages
    tree = f"<< /Type /Pages /Kids [{kids}] /Count {pages} >>"
    if packed:
        stream = zlib.compress("\n".join([tree, *leaves]).encode())
        head = f"<< /Type /ObjStm /N {pages} /First 0 /Filter /FlateDecode /Length {len(stream)} >>"
        return (
            b"%PDF-1.5\n1 0 obj\n" + head.encode() + b"\nstream\n" + stream + b"\nendstream\n%%EOF"
        )
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", tree, *leaves]
    lines = [f"{at} 0 obj\n{text}\nendobj" for at, text in enumerate(objects, 1)]
    return "\n".join(["%PDF-1.4", *lines, "trailer << /Root 1 0 R >>", "%%EOF"]).encode()


def locked_pdf() -> bytes:
    return pdf().replace(b"trailer <<", b"trailer << /Encrypt 9 0 R")
