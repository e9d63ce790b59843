"""The content blocks of a recorded message, cleaned of what the API would refuse.

What has no meaning outside the recorded request is left out: cache breakpoints, thinking, fields
that the API does not accept. Files that it refuses, and files of another account, become a note.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import Any

from conversations.context.tokens import images
from conversations.context.tokens.media import PDF, MediaError, identify_media
from conversations.context.view.block_fields import keep_fields
from conversations.context.view.view import THINKING

#: Replace an image or another file that the API would refuse, with every later request too.
NO_IMAGE = "[An image was here that cannot be shown.]"
NO_FILE = "[A file was here that cannot be shown.]"
#: Media types of base64 data, by the type of the block.
_MEDIA_TYPES = {"image": images.TYPES, "document": (PDF,)}
#: Fields that other programs write as null, which the API does not accept.
_NULLED = frozenset({"caller", "is_error"})
#: Fields of a citation that the API sends and does not take back.
_NOT_TAKEN_BACK = frozenset({"file_id"})


def clean_blocks(role: str, blocks: Iterable[Any]) -> Iterator[Any]:
    """Yield the blocks of a message that stay, cleaned, each an object with a type."""
    for block in blocks:
        if not isinstance(block, dict):
            yield block
            continue
        kept = _clean_fields(role, block)
        if isinstance(kept.get("content"), list):
            kept["content"] = list(clean_blocks("user", kept["content"]))
        elif kept.get("type") == "tool_result" and kept.get("content", "") is None:
            kept["content"] = ""
        kept = _replace_block(kept)
        # In an answer whitespace keeps cited texts apart.
        is_dropped = is_blank(kept) and not (role == "assistant" and kept["text"])
        if not is_dropped and kept.get("type") not in THINKING:
            yield kept


def _clean_fields(role: str, block: dict[str, Any]) -> dict[str, Any]:
    known = keep_fields(role, block) if isinstance(block.get("type"), str) else block
    kept = {key: part for key, part in known.items() if key not in _NULLED or part is not None}
    kept.pop("cache_control", None)
    if isinstance(kept.get("citations"), list):
        kept["citations"] = [_clean_citation(one) for one in kept["citations"]]
    return kept


def _clean_citation(one: Any) -> Any:
    if not isinstance(one, dict):
        return one
    return {key: part for key, part in one.items() if key not in _NOT_TAKEN_BACK}


def _replace_block(block: dict[str, Any]) -> dict[str, Any]:
    """Return the text that replaces a block which cannot be sent, else the block."""
    match block.get("type"):
        case "compaction":
            # Only the account and model that made the block can use it; its text stays.
            return {"type": "text", "text": str(block.get("content") or "")}
        case "image" if not _can_be_sent(block):
            return {"type": "text", "text": NO_IMAGE}
        case "document" if not _can_be_sent(block):
            return {"type": "text", "text": NO_FILE}
        case "container_upload":
            return {"type": "text", "text": NO_FILE}
        case _:
            return block


def _can_be_sent(block: dict[str, Any]) -> bool:
    """Return whether the source of an image or a document, if it has data, is what it says."""
    source = block.get("source")
    if not isinstance(source, dict) or source.get("type") not in ("base64", "file"):
        return True
    data, media_type = source.get("data"), source.get("media_type")
    if not isinstance(data, str) or media_type not in _MEDIA_TYPES[block["type"]]:
        return False
    try:
        raw = base64.b64decode("".join(data.split()), validate=True)
        return bool(identify_media(raw).media_type == media_type)
    except (MediaError, ValueError):
        return False


def is_blank(block: object) -> bool:
    return isinstance(block, dict) and is_text(block) and not str(block["text"]).strip()


def is_text(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") == "text" and "text" in block
