"""The result of a call as content for the model: bounded, typed by its bytes, and never fetched.

Text and images of the API's types are passed on, a link becomes a sentence. What cannot be passed
on (audio, other files, invalid images) is replaced by a notice, so the model knows that something
was there. An error result keeps its text only, because the API takes nothing else in it.
The size of a result is limited as for every tool (clean_result.py).
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
#: Characters of an image as base64, and of a text that is compared with structured content.
MOST_IMAGE, MOST_COMPARED = 7_000_000, 1_000_000
#: Bytes that a result may have: one image of the largest size, and text.
MOST_BYTES = MOST_IMAGE + 1_000_000
#: Returns the media type of an image that can be sent, "" for other bytes.
ImageType = Callable[[bytes], str]
Block = dict[str, Any]


def convert_result(server: str, result: CallToolResult, image_type: ImageType) -> ToolResult:
    """Convert the result of a server's tool to a ToolResult."""
    blocks = list(_convert_blocks(result, image_type))
    if result.is_error:
        blocks = [
            each if each["type"] == "text" else _omission_block("an image") for each in blocks
        ]
    details: dict[str, Any] = {"server": server}
    if result.is_error:
        details["code"] = "mcp_error"
    if all(each["type"] == "text" for each in blocks):
        words = "\n\n".join(each["text"] for each in blocks)
        return ToolResult(words or "The tool gave nothing.", result.is_error, details)
    return ToolResult(blocks, result.is_error, details)


def _convert_blocks(result: CallToolResult, image_type: ImageType) -> Iterator[Block]:
    for each in result.content[:MOST_BLOCKS]:
        yield _convert_block(each, image_type)
    more = len(result.content) - MOST_BLOCKS
    if more > 0:
        yield _omission_block(f"{more:,} more parts")
    if result.structured_content is not None and not _is_repeated(result):
        yield _text_block(json.dumps(result.structured_content, ensure_ascii=False))


def _is_repeated(result: CallToolResult) -> bool:
    """Tell whether the text repeats the structured content, as the protocol recommends."""
    structured = result.structured_content
    texts = [each.text for each in result.content[:MOST_BLOCKS] if each.type == "text"]
    if isinstance(structured, dict) and list(structured) == ["result"]:
        # Libraries wrap a value that is not an object so: the one text, or the blocks.
        inner = structured["result"]
        kinds = [each.get("type") for each in inner] if _is_list_of_objects(inner) else None
        if inner in texts or kinds == [each.type for each in result.content]:
            return True
    for text in texts:
        try:
            if len(text) <= MOST_COMPARED and json.loads(text) == structured:
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
            resource = block.resource
            if (text := getattr(resource, "text", None)) is not None:
                return _text_block(f"[resource {quote(resource.uri, 400)}]\n{text}")
            image = _image_block(getattr(resource, "blob", ""), image_type)
            return image or _omission_block(
                f"the resource {quote(resource.uri, 400)}, which is not text"
            )
        case _:
            assert_never(block)


def _format_link(link: ResourceLink) -> str:
    named = f"[link to the resource {quote(link.uri, 400)}"
    parts = [quote(each, 400) for each in (link.title or link.name, link.description) if each]
    return f"{named}: {', '.join(parts)}; it was not opened]"


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
    # Encoded again, so that what is stored is canonical base64.
    source = {"type": "base64", "media_type": found, "data": base64.b64encode(raw).decode("ascii")}
    return {"type": "image", "source": source}


def _text_block(text: str) -> Block:
    # The API takes no empty text block.
    return {"type": "text", "text": clean_text(text) or "(empty)"}


def _omission_block(what: str) -> Block:
    return _text_block(f"[left out: {what}]")
