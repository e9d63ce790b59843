"""Make each block of a message valid for the API, or leave it out.

A block is changed where its meaning stays clear: a result loses its error flag or broken parts, a
call an input that is not allowed, a text half a surrogate pair. Any other malformed block is left
out. A prompt of which nothing remains gets a note instead: a person's message never vanishes from
what is sent.
"""

from __future__ import annotations

from typing import Any, Final

from conversations.context.steps.repair_drafts import Draft, read_value
from conversations.context.view import blocks, wire
from conversations.context.view.block_fields import keep_fields
from conversations.context.view.view import Block

BY: Final = "repair"
#: What the model gets in the place of a message that cannot be sent.
NO_MESSAGE = "[This message of the user could not be sent again.]"
NO_PART = "[A part of this message could not be sent.]"
NO_RESULT = "[The result of this call could not be sent.]"
LOST_RESULT = "[There is no result of this call: it was lost. Check before repeating the call.]"


def write_text(text: str) -> Block:
    return Block(wire.encode({"type": "text", "text": text}), BY)


def write_result(id: str, text: str) -> Block:
    """Write a result whose text says why there is no real one."""
    value = {"type": "tool_result", "tool_use_id": id, "content": text, "is_error": True}
    return Block(wire.encode(value), BY)


def with_id(block: Block, id: str) -> Block:
    """Return a call or a result with another id."""
    key = "tool_use_id" if block.type == "tool_result" else "id"
    return Block(wire.encode(block.value | {key: id}), BY)


def mend_blocks(draft: Draft) -> bool:
    """Make every block of a message valid by itself; return whether any was changed."""
    if draft.is_broken and not draft.blocks:
        draft.blocks = [write_text(NO_MESSAGE)] if draft.is_prompt else []
        return True
    found = [_mend_block(draft.role, block) for block in draft.blocks]
    kept = [block for block in found if block is not None]
    if kept == draft.blocks:
        return False
    draft.blocks = kept or ([write_text(NO_MESSAGE)] if draft.is_prompt else [])
    return True


def _mend_block(role: str, block: Block) -> Block | None:
    if (text := wire.clean_escapes(block.text)) != block.text:
        block = Block(text, BY)
    value = read_value(block)
    if value is None:
        return None
    if blocks.find_flaw(role, [value]) is None:
        return block
    for mended in _list_mended(role, value):
        if blocks.find_flaw(role, [mended]) is None:
            return Block(wire.encode(mended), BY)
    is_file = value["type"] in ("document", "image")
    return write_text(NO_PART) if is_file and role == "user" else None


def _list_mended(role: str, value: dict[str, Any]) -> list[dict[str, Any]]:
    """Return possible replacements of a malformed block, the closest first."""
    bare = _strip_mark(keep_fields(role, value))
    match bare["type"]:
        case "tool_result":
            return [bare, *_list_mended_results(bare)]
        case "tool_use":
            return [bare, bare | {"input": {}}]
        case "compaction" if isinstance(bare.get("content"), str) and bare["content"].strip():
            return [bare, {"type": "text", "text": bare["content"]}]
        case _:
            return [bare]


def _list_mended_results(value: dict[str, Any]) -> list[dict[str, Any]]:
    plain = {key: part for key, part in value.items() if key != "is_error"}
    found = [plain]
    content = value.get("content")
    if isinstance(content, list):
        sound = [part for part in map(_strip_part, content) if _is_sound_part(part)]
        left = sound or NO_RESULT
        found += [value | {"content": left}, plain | {"content": left}]
    return [*found, plain | {"content": NO_RESULT, "is_error": True}]


def _strip_mark(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    return {key: value for key, value in part.items() if key != "cache_control"}


def _strip_part(part: Any) -> Any:
    has_type = isinstance(part, dict) and isinstance(part.get("type"), str)
    return _strip_mark(keep_fields("user", part) if has_type else part)


def strip_marks(block: Block) -> Block:
    """Return the block without cache breakpoints, on it and in it."""
    if "cache_control" not in block.text:
        return block
    value = _strip_mark(block.value)
    if isinstance(value.get("content"), list):
        value["content"] = [_strip_mark(part) for part in value["content"]]
    return block if value == block.value else Block(wire.encode(value), BY)


def _is_sound_part(part: Any) -> bool:
    wrapped = {"type": "tool_result", "tool_use_id": "x", "content": [part]}
    return blocks.find_flaw("user", [wrapped]) is None
