"""Checks of the bytes of images and PDFs.

The limits are of the documentation on vision and PDFs; the sheet says nothing of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentweb.emulator import json_codec
from agentweb.emulator.canonical_blocks import as_blocks
from agentweb.emulator.errors import Invalid
from agentweb.emulator.media import decode, image_size, image_type, pdf_pages
from agentweb.emulator.model_catalogue import Model

MOST_BYTES = 5 * 1024 * 1024
MOST_SIDE, FEW, MOST_SIDE_OF_MANY = 8_000, 20, 2_000
SMALL_WINDOW, MOST_IN_SMALL, MOST_IN_LARGE = 200_000, 100, 600
_SIDE = "At least one of the image dimensions exceed max allowed size"


def check_media(body: json_codec.Object, model: Model) -> None:
    found = list(_media(body["messages"]))
    images = [(where, block["source"]) for where, block in found if block["type"] == "image"]
    most = MOST_IN_SMALL if model.window <= SMALL_WINDOW else MOST_IN_LARGE
    if len(images) > most:
        raise Invalid(f"messages: too many images: {len(images)} > {most} maximum")
    for where, source in images:
        if source["type"] == "base64":
            _check_image(f"{where}.image.source.base64", source, is_one_of_many=len(images) > FEW)
    pages = sum(
        _checked_pdf(f"{where}.document.source.base64", block["source"])
        for where, block in found
        if block["type"] == "document" and block["source"]["type"] == "base64"
    )
    if pages > most:
        raise Invalid(f"A maximum of {most} PDF pages may be provided.")


def _media(messages: list[json_codec.Object]) -> Iterator[tuple[str, json_codec.Object]]:
    for index, message in enumerate(messages):
        for at, block in enumerate(as_blocks(message["content"])):
            where = f"messages.{index}.content.{at}"
            if block["type"] in ("image", "document"):
                yield where, block
            elif block["type"] == "tool_result":
                for nested, part in enumerate(as_blocks(block.get("content") or [])):
                    if part["type"] in ("image", "document"):
                        yield f"{where}.tool_result.content.{nested}", part


def _check_image(where: str, source: json_codec.Object, *, is_one_of_many: bool) -> None:
    raw = decode(source["data"])
    if raw is None:
        raise Invalid(f"{where}.data: invalid base64 data")
    if len(source["data"]) > MOST_BYTES:
        count = len(source["data"])
        raise Invalid(f"{where}: image exceeds 5 MB maximum: {count} bytes > {MOST_BYTES} bytes")
    said, kind = source["media_type"], image_type(raw)
    if kind and kind != said:
        raise Invalid(
            f"{where}.data: The image was specified using the {said} media type, but the image"
            f" appears to be a {kind} image"
        )
    size = image_size(raw)
    if size is None or min(size) < 1:
        raise Invalid("Could not process image")
    if max(size) > MOST_SIDE:
        raise Invalid(f"{where}.data: {_SIDE}: {MOST_SIDE} pixels")
    if is_one_of_many and max(size) > MOST_SIDE_OF_MANY:
        raise Invalid(f"{where}.data: {_SIDE} for many-image requests: {MOST_SIDE_OF_MANY} pixels")


def _checked_pdf(where: str, source: json_codec.Object) -> int:
    raw = decode(source["data"])
    if raw is None:
        raise Invalid(f"{where}.data: invalid base64 data")
    if not raw.startswith(b"%PDF-"):
        raise Invalid(f"{where}.data: The PDF specified was not valid.")
    if b"/Encrypt" in raw:
        raise Invalid(f"{where}.data: The PDF specified is password protected.")
    return pdf_pages(raw)
