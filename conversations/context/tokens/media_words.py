"""Describe an image or a document in words, for a text that replaces it."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from conversations.context.tokens import images, pdf

#: Characters of an image's base64 that are read for its size, which may follow camera metadata.
HEAD = 524_288


def decode_base64(data: str, most: int | None = None) -> bytes:
    """Decode base64, or the beginning of it; b"" when it is malformed."""
    try:
        return base64.b64decode(data[:most], validate=False)
    except (binascii.Error, ValueError):
        return b""


def describe_block(block: dict[str, Any]) -> str:
    """Describe a block that is not text: `[image, PNG 640 × 480]`, `[document "a.pdf"]`."""
    facts = [str(block.get("type"))]
    if block.get("title"):
        facts.append(f'"{block["title"]}"')
    source = block.get("source")
    if isinstance(source, dict) and isinstance(source.get("data"), str):
        facts += _list_facts(str(source.get("media_type") or ""), source["data"])
    return f"[{', '.join(facts)}]"


def read_text(block: dict[str, Any]) -> str | None:
    """Return the text of a text document; None for anything else."""
    source = block.get("source")
    if not isinstance(source, dict) or source.get("type") != "text":
        return None
    return str(source.get("data") or "")


def describe_with_text(block: dict[str, Any]) -> str:
    """Describe a block that is not text; the text of a text document follows."""
    text = read_text(block)
    return describe_block(block) if text is None else f"{describe_block(block)}\n{text}"


def _list_facts(media_type: str, data: str) -> list[str]:
    if media_type.startswith("image/"):
        size = images.read_size(decode_base64(data, HEAD))
        return [f"{media_type[6:].upper()} {size[0]} × {size[1]}"] if size else []
    if media_type == "application/pdf":
        count = pdf.count_pages(decode_base64(data))
        return [f"{count} page" if count == 1 else f"{count} pages"]
    return []
