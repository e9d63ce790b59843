"""The full text of any original of a conversation, by the id that its stub names.

People can read originals of every version. The model can recall only those of the shown path,
because whether it has read private data is judged by that path.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from conversations.context.errors import WireError
from conversations.context.tokens.media_words import describe_with_text
from conversations.context.view import wire
from conversations.context.view.blocks import (
    is_server_result,
    list_result_images,
    read_result_text,
)
from conversations.context.view.searched_originals import INPUT, read_result, write_input
from conversations.context.view.stored_blocks import read_blocks, read_content
from conversations.files.attachment_display import expand_for_reading
from conversations.log.findings import read_decodable
from conversations.log.tree import build_path_condition
from conversations.models import Conversation, Message, ToolCall


def read_original(conversation_id: int, id: str) -> str | None:
    """Return the result or the input of a call, or a message by number; None when unknown."""
    return _find(_Rows.of(conversation_id), id)


def recall_original(conversation: Conversation, id: str) -> str | None:
    """Return an original of the shown path, for the recall tool; None when it is not there."""
    rows, path = _Rows.of(conversation.pk), build_path_condition("turn", conversation)
    return _find(_Rows(rows.messages.filter(path), rows.calls.filter(path)), id)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The messages and tool calls in which originals are searched."""

    messages: QuerySet[Message]
    calls: QuerySet[ToolCall]

    @classmethod
    def of(cls, conversation_id: int) -> _Rows:
        return cls(
            Message.objects.filter(conversation_id=conversation_id),
            ToolCall.objects.filter(turn__conversation_id=conversation_id),
        )


def _find(rows: _Rows, id: str) -> str | None:
    if "\0" in id:
        return None  # PostgreSQL refuses a NUL in a parameter
    number = id.removeprefix("msg_")
    if number.isdecimal() and len(number) < 19:
        message = read_decodable(rows.messages.filter(seq=int(number)).first)
        return None if message is None else read_message_text(message)
    if id.endswith(INPUT):
        named = id.removesuffix(INPUT)
        find = _find_inputs_of if named.startswith("msg_") else _find_input
        return find(rows, named)
    content = _read_output(rows.calls, id)
    return _find_in_messages(rows.messages, id) if content is None else read_result_text(content)


def list_original_images(conversation_id: int, id: str) -> list[str]:
    """Return the images of a tool result as data URLs."""
    if "\0" in id:
        return []
    return list_result_images(_read_output(_Rows.of(conversation_id).calls, id))


def _read_output(calls: QuerySet[ToolCall], id: str) -> Any:
    ended = calls.filter(tool_use_id=id).exclude(output=None)
    call = read_decodable(ended.select_related("output").first)
    return None if call is None or call.output is None else read_content(call.output.text)


def _find_input(rows: _Rows, id: str) -> str | None:
    call = read_decodable(rows.calls.filter(tool_use_id=id).first)
    if call is not None:
        with suppress(WireError):
            return write_input(wire.decode(call.input))
    # Calls of the API's own tools, and imported ones, have no row of their own.
    answers = rows.messages.filter(kind="answer", content__contains=wire.encode(id))
    for message in read_decodable(lambda: list(answers)):
        for block in read_blocks(message.content):
            if block.get("id") == id and "input" in block:
                return write_input(block["input"])
    return None


def _find_inputs_of(rows: _Rows, id: str) -> str | None:
    """Return the inputs of all calls of one answer."""
    number = id.removeprefix("msg_")
    if not number.isdecimal() or len(number) > 18:
        return None
    message = read_decodable(rows.messages.filter(seq=int(number), kind="answer").first)
    calls = [] if message is None else [b for b in read_blocks(message.content) if "input" in b]
    return "\n\n".join(f"{call['name']}\n{write_input(call['input'])}" for call in calls) or None


def _find_in_messages(messages: QuerySet[Message], id: str) -> str | None:
    """Search the messages: results of the API's own tools, and imported ones, have no row."""
    holding = messages.filter(kind__in=("results", "answer"), content__contains=wire.encode(id))
    for message in read_decodable(lambda: list(holding)):
        for block in read_blocks(message.content):
            if block.get("tool_use_id") == id:
                return read_result(block)
    return None


def read_message_text(message: Message) -> str:
    """Return a message as text, the texts of its files included."""
    is_prompt = message.kind == Message.Kind.PROMPT
    content = message.content
    blocks = (
        expand_for_reading(message.conversation, content) if is_prompt else read_blocks(content)
    )
    return "\n\n".join(_block_text(block) for block in blocks if _is_shown(block["type"]))


def _is_shown(kind: str) -> bool:
    shown = ("text", "tool_result", "image", "document")
    return kind in shown or is_server_result(kind)


def _block_text(block: dict[str, Any]) -> str:
    match block["type"]:
        case "text":
            return str(block["text"])
        case "image" | "document":
            # A block that is not text is replaced by a description of it.
            return describe_with_text(block)
        case _:
            return read_result(block)
