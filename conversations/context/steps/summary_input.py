"""Render the zone as text for the summary call: roles, texts, and previews of tool results.

The text is data from people, pages and tools. It is fenced, and anything inside it that looks like
the fence or like a summary's markers is neutralised.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from conversations.context.steps.recall_list import neutralise_markers
from conversations.context.steps.removed_lists import strip_lists
from conversations.context.steps.summary_parts import RenderedMessage
from conversations.context.steps.summary_zone import Zone
from conversations.context.text import graphemes
from conversations.context.text.shorten import preview_text
from conversations.context.tokens.media_words import describe_block, read_text
from conversations.context.view import wire
from conversations.context.view.view import THINKING, Message

HEAD, TAIL = 500, 200
#: Characters of the first request that the model reads, so that the summary fits its purpose.
_FIRST = 4_000
_FENCE = re.compile(r"<(/?)\s*(transcript|first_request|previous_summary|part)\b", re.IGNORECASE)


def write_transcript(zone: Zone, text: str, limit: int) -> str:
    """Write the zone's rendered text behind what precedes it, within `limit` characters.

    It is cut in the middle if it is longer.
    """
    parts = write_preface(zone)
    used = sum(map(len, parts))
    parts.append(fence_text("transcript", _cut_middle(text, max(1_000, limit - used))))
    return "\n\n".join(parts)


def write_preface(zone: Zone) -> list[str]:
    """Write what precedes the zone: the first request, and the present summary."""
    first = "\n".join(_render_blocks([block.value for block in zone.own]))
    parts = [fence_text("first_request", preview_text(first, _FIRST, TAIL))]
    if zone.previous:
        # The engine carries the lists over, not the model.
        previous = "\n\n".join(map(strip_lists, zone.written))
        parts.append(fence_text("previous_summary", previous.strip()))
    return parts


def render_messages(messages: Iterable[Message]) -> list[RenderedMessage]:
    """Render each message that is not empty."""
    return [
        RenderedMessage(message.role, _render_message(message), bool(message.shape.results))
        for message in messages
        if not message.is_empty
    ]


def read_own_texts(message: Message) -> str:
    """Return a message's own texts and the inputs of its calls, without results."""
    values = [block.value for block in message.blocks]
    texts = [value["text"] for value in values if value["type"] == "text"]
    inputs = [wire.encode(value["input"]) for value in values if value["type"] == "tool_use"]
    return "\n".join([*texts, *inputs])


def read_results(message: Message) -> str:
    """Return the texts of a message's tool results."""
    blocks = (message.blocks[result.at].value for result in message.shape.results)
    return "\n".join(map(_read_content, blocks))


def _render_message(message: Message) -> str:
    lines = _render_blocks([block.value for block in message.blocks])
    return "\n".join([f"[{message.role}]", *lines])


def _render_blocks(blocks: list[dict[str, Any]]) -> Iterator[str]:
    for value in blocks:
        match value["type"]:
            case "text":
                yield value["text"]
            case "tool_use":
                given = preview_text(wire.encode(value["input"]), HEAD, TAIL)
                yield f"[calls {value['name']} as {value['id']}] {given}"
            case "tool_result":
                failed = ", an error" if value.get("is_error") else ""
                given = preview_text(_read_content(value), HEAD, TAIL)
                yield f"[result of {value['tool_use_id']}{failed}] {given}"
            case "compaction":
                yield str(value.get("content") or "")
            case "document" if (text := read_text(value)) is not None:
                yield f"{describe_block(value)} {preview_text(text, HEAD, TAIL)}"
            case name if name not in THINKING:
                yield f"{describe_block(value)[:-1]} left out]"


def _read_content(value: dict[str, Any]) -> str:
    content = value.get("content", "")
    if isinstance(content, str):
        return content
    return "\n".join(
        block["text"] if block["type"] == "text" else f"{describe_block(block)[:-1]} left out]"
        for block in content
    )


def fence_text(name: str, text: str) -> str:
    harmless = _FENCE.sub(r"(\1\2", neutralise_markers(text))
    return f"<{name}>\n{harmless}\n</{name}>"


def _cut_middle(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = (limit - 80) // 2
    head = text[: graphemes.find_cut_before(text, half)]
    tail = text[graphemes.find_cut_after(text, len(text) - half) :]
    gone = len(text) - len(head) - len(tail)
    return f"{head}\n[… {gone:,} characters of the middle left out …]\n{tail}"
