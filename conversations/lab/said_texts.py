"""What the model reads and writes of a block as texts, and what recall can search of a message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from conversations.context.tokens.media_words import read_text
from conversations.context.view import searched_originals, wire
from conversations.context.view.message_shape import Call
from conversations.context.view.searched_originals import SearchedOriginal
from conversations.context.view.view import Message


def read_texts(block: dict[str, Any]) -> Iterator[str]:
    """Yield what the model reads of a block, without the bytes of images."""
    match block["type"]:
        case "text":
            yield block["text"]
        case "tool_use":
            yield from list_strings([block["name"], block["input"]])
        case "tool_result":
            content = block.get("content", "")
            if isinstance(content, str):
                yield content
            else:
                yield from (text for nested in content for text in read_texts(nested))
        case "image" | "thinking" | "redacted_thinking":
            pass
        case "document":
            yield from list_strings([value for key, value in block.items() if key != "source"])
            if (text := read_text(block)) is not None:
                yield text
        case _:
            yield from list_strings(block)


def list_strings(value: Any) -> Iterator[str]:
    """Yield every text of a JSON value, keys included, and other values as JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from list_strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from list_strings(item)
    else:
        yield wire.encode(value)


def list_values(value: Any) -> Iterator[str]:
    """Yield every text of a JSON value, without keys, numbers and the like."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from list_values(item)


def list_originals(messages: Iterable[Message]) -> Iterator[tuple[int, SearchedOriginal]]:
    """Yield what recall can search, with the index of its message, in order."""
    calls: dict[str, Call] = {}
    for at, message in enumerate(messages):
        blocks = [block.value for block in message.blocks]
        if message.kind == "prompt":
            texts = [text for value in blocks for text in read_texts(value)]
            yield at, searched_originals.read_prompt(message.seq, "\n\n".join(texts), blocks)
        else:
            for one in searched_originals.read_other(message.seq, blocks, calls):
                yield at, one
