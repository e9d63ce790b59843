"""The result of a call as content for the model: bounded, typed by its bytes, and never fetched.

Text is text, an image that the API takes is an image, a link is words. What cannot be passed on
(sound, other files, an image that is none) is named and left out, so the model knows that something
was there. Of an error only the words go on, because the API takes nothing else with one. How large
a result may be is every tool's limit, not ours (intake.py).
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, assert_never

from tools.framework.clean_text import clean_text, quote
from tools.framework.tool import ToolResult

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock, ResourceLink

MOST_BLOCKS = 100
#: Characters of an image as base64, and of a text that is compared with what it should say.
MOST_IMAGE, MOST_SAID = 7_000_000, 1_000_000
#: Bytes that a result may have: an image of the largest and some words.
MOST_BYTES = MOST_IMAGE + 1_000_000
#: Names the type of an image that can be sent; "": it is none.
ImageType = Callable[[bytes], str]
Block = dict[str, Any]


def convert_result(server: str, found: CallToolResult, image_type: ImageType) -> ToolResult:
    """Make what a tool gives of what a server gave."""
    blocks = list(_convert_blocks(found, image_type))
    if found.is_error:
        blocks = [
            each if each["type"] == "text" else _omission_block("an image") for each in blocks
        ]
    details: dict[str, Any] = {"server": server}
    if found.is_error:
        details["code"] = "mcp_error"
    if all(each["type"] == "text" for each in blocks):
        words = "\n\n".join(each["text"] for each in blocks)
        return ToolResult(words or "The tool gave nothing.", found.is_error, details)
    return ToolResult(blocks, found.is_error, details)


def _convert_blocks(found: CallToolResult, image_type: ImageType) -> Iterator[Block]:
    for each in found.content[:MOST_BLOCKS]:
        yield _convert_block(each, image_type)
    more = len(found.content) - MOST_BLOCKS
    if more > 0:
        yield _omission_block(f"{more:,} more parts")
    if found.structured_content is not None and not _is_repeated(found):
        yield _text_block(json.dumps(found.structured_content, ensure_ascii=False))


def _is_repeated(found: CallToolResult) -> bool:
    """Tell whether the text already says the structured content, as servers are told to do."""
    said = found.structured_content
    texts = [each.text for each in found.content[:MOST_BLOCKS] if each.type == "text"]
    if isinstance(said, dict) and list(said) == ["result"]:
        # A library's way to wrap what is no object: the one text, or the blocks themselves.
        inner = said["result"]
        kinds = [each.get("type") for each in inner] if _is_list_of_objects(inner) else None
        if inner in texts or kinds == [each.type for each in found.content]:
            return True
    for text in texts:
        try:
            if len(text) <= MOST_SAID and json.loads(text) == said:
                return True
        except (ValueError, RecursionError):
            continue
    return False


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _convert_block(block: ContentBlock, image_type: ImageType) -> Block:
    match block.type:
        case "text":
            return _text_block(block.text)
        case "image":
            return _image_block(block.data, image_type) or _omission_block(
                "an image that cannot be sent"
            )
        case "audio":
            return _omission_block(f"sound, {len(block.data):,} characters of base64")
        case "resource_link":
            return _text_block(_format_link(block))
        case "resource":
            held = block.resource
            if (text := getattr(held, "text", None)) is not None:
                return _text_block(f"[resource {quote(held.uri, 400)}]\n{text}")
            image = _image_block(getattr(held, "blob", ""), image_type)
            return image or _omission_block(
                f"the resource {quote(held.uri, 400)}, which is not text"
            )
        case _:
            assert_never(block)


def _format_link(link: ResourceLink) -> str:
    named = f"[link to the resource {quote(link.uri, 400)}"
    said = [quote(each, 400) for each in (link.title or link.name, link.description) if each]
    return f"{named}: {', '.join(said)}; it was not opened]"


def _image_block(data: str, image_type: ImageType) -> Block | None:
    if len(data) > MOST_IMAGE:
        return None
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    found = image_type(raw)
    if not found:
        return None
    # Encoded anew, so that what is stored is base64 in its one form.
    source = {"type": "base64", "media_type": found, "data": base64.b64encode(raw).decode("ascii")}
    return {"type": "image", "source": source}


def _text_block(text: str) -> Block:
    # The API takes no empty text block.
    return {"type": "text", "text": clean_text(text) or "(empty)"}


def _omission_block(what: str) -> Block:
    return _text_block(f"[left out: {what}]")
