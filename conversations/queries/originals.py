"""The full text of anything a conversation was shown, by the id a notice names."""

from __future__ import annotations

from typing import Any

from conversations.context import wire
from conversations.models import Message, ToolCall
from conversations.queries.cards import result_text


def original(conversation_id: int, id: str) -> str | None:
    """Give a tool result by its tool_use id, or a message by its number; None when unknown."""
    if "\0" in id:
        return None  # PostgreSQL cannot even be asked
    number = id.removeprefix("msg_")
    if number.isdecimal() and len(number) < 19:
        message = Message.objects.filter(conversation_id=conversation_id, seq=int(number)).first()
        return None if message is None else _message_text(message.content)
    call = (
        ToolCall.objects.filter(turn__conversation_id=conversation_id, tool_use_id=id)
        .exclude(output=None)
        .select_related("output")
        .first()
    )
    if call is not None and call.output is not None:
        return result_text(wire.decode(call.output.text))
    return _imported(conversation_id, id)


def _imported(conversation_id: int, id: str) -> str | None:
    """Look into the messages themselves: imported tool results have no row of their own."""
    quoted = wire.encode(id)
    rows = Message.objects.filter(conversation_id=conversation_id, kind="results")
    for message in rows.filter(content__contains=quoted):
        for block in wire.decode(message.content):
            if block.get("tool_use_id") == id:
                return result_text(block.get("content", ""))
    return None


def _message_text(content: str) -> str:
    blocks: list[dict[str, Any]] = wire.decode(content)
    texts = (
        b["text"] if b["type"] == "text" else result_text(b.get("content", ""))
        for b in blocks
        if b["type"] in ("text", "tool_result")
    )
    return "\n\n".join(texts)
