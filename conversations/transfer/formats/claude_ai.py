"""Claude.ai's export: a list of messages with blocks, and the text of attachments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conversations.context.view import wire
from conversations.transfer.formats.text_messages import (
    build_messages,
    build_record_id,
    choose_title,
    join_texts,
)

ROLES = {"human": "user", "assistant": "assistant"}


def convert_claude_ai(found: dict[str, Any]) -> dict[str, Any]:
    """Convert a conversation to a record; raises RecordError."""
    messages = build_messages(_list_texts(found))
    return {
        "id": build_record_id("claude", found, "uuid"),
        "title": choose_title(found.get("name"), messages),
        "created_at": found.get("created_at"),
        "updated_at": found.get("updated_at"),
        "messages": messages,
    }


def _list_texts(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for message in wire.list_objects(found.get("chat_messages")):
        role = ROLES.get(str(message.get("sender")))
        if role is not None:
            yield role, join_texts([_text(message), *_list_attached(message)])


def _text(message: dict[str, Any]) -> str:
    """Return the text of the blocks; older exports have it beside them."""
    blocks = wire.list_objects(message.get("content"))
    found = join_texts(block.get("text") for block in blocks if block.get("type") == "text")
    return found or str(message.get("text") or "")


def _list_attached(message: dict[str, Any]) -> Iterator[str]:
    for each in wire.list_objects(message.get("attachments")):
        name, content = each.get("file_name") or "file", each.get("extracted_content")
        yield f"[{name}]\n{content}" if isinstance(content, str) and content else f"[{name}]"
    for each in wire.list_objects(message.get("files")):
        yield f"[{each.get('file_name') or 'file'}]"
