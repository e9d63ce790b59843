"""The export of Claude.ai: messages in a row, with blocks, and the text of what was attached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conversations.transfer.formats.text_messages import listed, messages, record_id, texts

ROLES = {"human": "user", "assistant": "assistant"}


def record(found: dict[str, Any]) -> dict[str, Any]:
    """Give a conversation as a record; raises RecordError."""
    return {
        "id": record_id("claude", found, "uuid"),
        "title": found.get("name"),
        "created_at": found.get("created_at"),
        "updated_at": found.get("updated_at"),
        "messages": messages(_said(found)),
    }


def _said(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for message in listed(found.get("chat_messages")):
        role = ROLES.get(str(message.get("sender")))
        if role is not None:
            yield role, texts([_text(message), *_attached(message)])


def _text(message: dict[str, Any]) -> str:
    """Give the text of the blocks; older exports have it beside them."""
    blocks = listed(message.get("content"))
    found = texts(block.get("text") for block in blocks if block.get("type") == "text")
    return found or str(message.get("text") or "")


def _attached(message: dict[str, Any]) -> Iterator[str]:
    for each in listed(message.get("attachments")):
        name, content = each.get("file_name") or "file", each.get("extracted_content")
        yield f"[{name}]\n{content}" if isinstance(content, str) and content else f"[{name}]"
    for each in listed(message.get("files")):
        yield f"[{each.get('file_name') or 'file'}]"
