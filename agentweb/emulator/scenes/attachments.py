"""Attached files: the answer describes what was received."""

from __future__ import annotations

from agentweb.emulator import json_codec, media
from agentweb.emulator.scenes.scene import Reply, say
from agentweb.emulator.scenes.view import Request, blocks, own_text

_SHOWN = 200
_KINDS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/gif": "GIF", "image/webp": "WebP"}


def look(request: Request) -> Reply | None:
    """Name the files of the last message, unless it consists of tool results."""
    last = request.messages[-1]
    found = [block for block in blocks(last) if media.is_inline(block)]
    if last["role"] != "user" or not found:
        return None
    lines = [f"{number}. {_describe(block)}" for number, block in enumerate(found, 1)]
    count = "one file" if len(found) == 1 else f"{len(found)} files"
    words = own_text(last)
    quote = f"\n\nYou wrote: “{_short(words)}”" if words else ""
    return say(
        f"I see {count} with your message:\n\n" + "\n".join(lines) + quote,
        thinking="The user shows me something; I say what it is.",
    )


def _describe(block: json_codec.Object) -> str:
    source = block["source"]
    title = f" named “{block['title']}”" if block.get("title") else ""
    if source["type"] == "text":
        words = len(source["data"].split())
        return f"a text{title} of {words:,} words, beginning “{_short(source['data'])}”"
    raw = media.decode(source["data"]) or b""
    size = f"{max(1, round(len(raw) / 1000)):,} KB"
    if block["type"] == "document":
        pages = media.pdf_pages(raw)
        return f"a PDF{title} with {pages} page{'' if pages == 1 else 's'}, {size}"
    width, height = media.image_size(raw) or (0, 0)
    return f"a {_KINDS[source['media_type']]} image, {width} × {height} pixels, {size}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"
