"""The blocks of a stored message, as far as they can be read.

A row can be damaged, and an import malformed. Pages show the readable part: the repair handles
requests that would break a rule, and verification reports the changed row.
"""

from __future__ import annotations

from typing import Any

from conversations.context.errors import WireError
from conversations.context.view import wire
from conversations.context.view.blocks import is_server_result

#: Fields without which a block of a type cannot be shown.
_NEEDED: dict[str, dict[str, type]] = {
    "text": {"text": str},
    "thinking": {"thinking": str},
    "tool_use": {"id": str, "name": str, "input": dict},
    "tool_result": {"tool_use_id": str},
    "image": {"source": dict},
    "document": {"source": dict},
}


def read_blocks(content: str) -> list[dict[str, Any]]:
    """Return the blocks of a message's wire text, without those that are malformed."""
    try:
        values = wire.decode(content)
    except WireError:
        return []
    return list(filter(_is_sound, values)) if isinstance(values, list) else []


def read_content(text: str) -> str | list[dict[str, Any]] | None:
    """Return the content of a tool result from its wire text; None when it cannot be read."""
    try:
        value = wire.decode(text)
    except WireError:
        return None
    return value if _is_result(value) else None


def _is_sound(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return False
    kind = "tool_result" if is_server_result(value["type"]) else value["type"]
    needed = _NEEDED.get(kind, {})
    if not all(isinstance(value.get(name), one) for name, one in needed.items()):
        return False
    return value["type"] != "tool_result" or _is_result(value.get("content", ""))


def _is_result(content: Any) -> bool:
    return isinstance(content, str) or (isinstance(content, list) and all(map(_is_sound, content)))
