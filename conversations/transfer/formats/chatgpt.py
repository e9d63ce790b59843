"""ChatGPT's export: a tree of messages, of which the branch shown last is converted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.utils.translation import gettext as _

from conversations.transfer.formats.text_messages import (
    build_messages,
    build_record_id,
    choose_title,
    join_texts,
)
from conversations.transfer.recordings import RecordError

ROLES = ("user", "assistant")


def convert_chatgpt(found: dict[str, Any]) -> dict[str, Any]:
    """Convert a conversation to a record; raises RecordError."""
    messages = build_messages(_list_texts(found))
    return {
        "id": build_record_id("chatgpt", found, "conversation_id", "id"),
        "title": choose_title(found.get("title"), messages),
        "created_at": _time(found.get("create_time")),
        "updated_at": _time(found.get("update_time")),
        "messages": messages,
    }


def _list_texts(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for message in _list_branch(found):
        author = message.get("author")
        role = author.get("role") if isinstance(author, dict) else None
        # A message to another recipient is a tool call.
        is_open = message.get("recipient") in (None, "all")
        if role in ROLES and is_open and not _is_hidden(message):
            yield str(role), _text(message.get("content"))


def _list_branch(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages from the root to the last one shown."""
    mapping = found.get("mapping")
    if not isinstance(mapping, dict):
        raise RecordError(_('"mapping" must be an object'))
    at = found.get("current_node") or _find_newest_leaf(mapping)
    seen: set[object] = set()
    branch: list[dict[str, Any]] = []
    while isinstance(at, str) and at not in seen and isinstance(mapping.get(at), dict):
        seen.add(at)
        node = mapping[at]
        if isinstance(node.get("message"), dict):
            branch.append(node["message"])
        at = node.get("parent")
    return branch[::-1]


def _find_newest_leaf(mapping: dict[str, Any]) -> str | None:
    leaves = [
        name
        for name, node in mapping.items()
        if isinstance(node, dict) and not node.get("children")
    ]
    return leaves[-1] if leaves else None


def _is_hidden(message: dict[str, Any]) -> bool:
    metadata = message.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("is_visually_hidden_from_conversation"))


def _text(content: object) -> str:
    if not isinstance(content, dict):
        return ""
    match content.get("content_type"):
        case "text" | "multimodal_text":
            parts = content.get("parts")
            return join_texts(map(_part, parts)) if isinstance(parts, list) else ""
        case "code":
            return f"```\n{content.get('text') or ''}\n```"
        case _:
            return ""


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return str(part["text"])
    return "[image]" if isinstance(part, dict) else ""


def _time(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return datetime.fromtimestamp(value, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None
