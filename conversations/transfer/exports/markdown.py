"""A conversation as Markdown: messages, and tool calls with their full results, in order.

Of a conversation with versions only the shown path is written; the record has all. Thinking is left
out. Tool inputs and results are in fences that nothing inside them can close.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from heapq import merge
from typing import Any

from conversations.context.tokens.media_words import describe_block, read_text
from conversations.context.view import wire
from conversations.context.view.stored_blocks import read_blocks
from conversations.files.attachment_display import expand_for_reading
from conversations.log.entries import iterate_messages, iterate_transformations, list_path_numbers
from conversations.models import Conversation, Message, Transformation


def write_markdown(conversation: Conversation, *, with_events: bool = False) -> Iterator[str]:
    """Yield the document in pieces."""
    yield f"# {_flatten(conversation.title) or 'New chat'}\n\n"
    yield f"{conversation.created_at:%Y-%m-%d %H:%M} UTC · {_flatten(conversation.model)}\n"
    if conversation.instructions:
        yield f"\n## Instructions\n\n{conversation.instructions.strip()}\n"
    rows: Iterator[Message | Transformation] = iterate_messages(conversation)
    if with_events:
        rows = merge(rows, iterate_transformations(conversation), key=lambda row: row.seq)
    last_kind, path = "", list_path_numbers(conversation)
    tools: dict[str, str] = {}
    ours = set(conversation.turns.exclude(continues=None).values_list("pk", flat=True))
    for row in rows:
        if row.seq not in path:
            continue
        if isinstance(row, Transformation):
            yield _format_event(row)
            continue
        if row.kind == Message.Kind.PROMPT and row.turn_id in ours:
            yield "\n*Continued*\n"
            continue
        if row.kind == Message.Kind.PROMPT:
            yield "\n## You\n"
        elif row.kind == Message.Kind.ANSWER and last_kind == Message.Kind.PROMPT:
            yield "\n## Answer\n"
        last_kind = row.kind
        is_prompt = row.kind == Message.Kind.PROMPT
        blocks = (
            expand_for_reading(conversation, row.content) if is_prompt else read_blocks(row.content)
        )
        for block in blocks:
            yield _format_block(block, tools)


def _format_event(row: Transformation) -> str:
    sizes = f"{row.tokens_before:,} → {row.tokens_after:,} tokens"
    what = f"{row.kind}, {row.outcome}: {sizes} · {row.note}"
    return f"\n> *Context: {_flatten(what)}*\n"


def _format_block(block: dict[str, Any], tools: dict[str, str]) -> str:
    """Write a block; `tools` has the names of the calls so far, since results come after all."""
    match block["type"]:
        case "text":
            return f"\n{str(block['text']).strip()}\n"
        case "tool_use":
            value = wire.encode(block.get("input"))
            name = tools[str(block.get("id"))] = _format_code(str(block.get("name")))
            return f"\n**Tool** {name}\n{_fence(value, 'json')}"
        case "tool_result":
            what = "**Error**" if block.get("is_error") else "**Result**"
            name = tools.get(str(block.get("tool_use_id")), "")
            return f"\n{f'{what} {name}'.strip()}\n{_fence(_format_text(block.get('content')))}"
        case "thinking" | "redacted_thinking":
            return ""
        case "document" if (text := read_text(block)) is not None:
            return f"\n*{_flatten(describe_block(block))}*\n{_fence(text)}"
        case _:
            return f"\n*{_flatten(describe_block(block))}*\n"


def _format_text(content: object) -> str:
    if not isinstance(content, list):
        return str(content or "")
    parts = (b.get("text", f"[{b.get('type')}]") for b in content if isinstance(b, dict))
    return "\n\n".join(str(part) for part in parts)


def _fence(text: str, language: str = "") -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"\n{fence}{language}\n{text.rstrip()}\n{fence}\n"


def _format_code(text: str) -> str:
    return f"`{_flatten(text).replace('`', '')}`"


def _flatten(text: str) -> str:
    return " ".join(text.split())
