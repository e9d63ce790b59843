"""What the results of the API's own tools say, as text for people and for the model.

The API seals a part of some results for itself (`encrypted_content` of a page that a search found):
nobody else can read it, so it is left out. Everything else is in the text.
"""

from __future__ import annotations

from typing import Any

from conversations.context.tokens.media_words import describe_with_text
from conversations.context.view import wire
from conversations.context.view.blocks import is_server_result
from conversations.context.view.message_shape import Result
from conversations.context.view.view import Message

_SEALED = "encrypted_"
_MEDIA = ("image", "document")


def read_server_results(message: Message) -> tuple[Result, ...]:
    """Return the results of the API's own tools in a message, with the characters of their text."""
    if not message.shape.server_results:
        return ()
    return tuple(
        _read_result(at, block.value)
        for at, block in enumerate(message.blocks)
        if is_server_result(block.type)
    )


def _read_result(at: int, value: dict[str, Any]) -> Result:
    content = value.get("content")
    has_failed = isinstance(content, dict) and "error_code" in content
    is_error = has_failed or value.get("is_error") is True
    return Result(at, value["tool_use_id"], len(read_server_text(content)), 0, is_error)


def read_server_text(content: Any) -> str:
    """Return the content of a result as text; "" if it has none that can be read."""
    if content is None:
        return ""
    return "\n\n".join(map(_read_part, content if isinstance(content, list) else [content]))


def _read_part(part: Any) -> str:
    match part:
        case {"type": "text", "text": str(text)}:
            return text
        case dict() if part.get("type") not in _MEDIA:
            fields = ((name, item) for name, item in part.items() if _is_readable(name, item))
            return "\n".join(f"{name}: {_read_field(item)}" for name, item in fields)
        case _:
            return _read_field(part)


def _is_readable(name: str, item: Any) -> bool:
    return name != "type" and not name.startswith(_SEALED) and item not in (None, "", [])


def _read_field(item: Any) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, dict) and item.get("type") in _MEDIA:
        return describe_with_text(item)
    return wire.encode(item)
