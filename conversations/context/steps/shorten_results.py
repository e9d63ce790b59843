"""Shorten tool results: a string stays a string, a list of blocks a list; pairing is unchanged.

Blocks that are not text become a stub; ids, `is_error` and every other field are carried over. A
result that would not become smaller, in bytes and in tokens, is left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conversations.context.text import graphemes
from conversations.context.text.shorten import shorten, shorten_text, write_cut_notice
from conversations.context.text.water_level import find_water_level
from conversations.context.view import wire
from conversations.context.view.blocks import SERVER_CALLS
from conversations.context.view.message_shape import Call, read_call
from conversations.context.view.view import Block, Message, View
from conversations.context.view.view_cache import CALLS_FOLD

Content = str | list[dict[str, Any]]
Rewrite = Callable[[Content, str], Content]
#: When texts share room, none is shortened below this many characters.
_LEAST = 64


def index_calls(view: View) -> dict[str, Call]:
    """Return every tool call of the view by its id, those of the API's own tools included."""
    return view.fold_cached(CALLS_FOLD, dict, _read_calls)


def _read_calls(known: dict[str, Call], message: Message) -> None:
    for call in message.shape.calls:
        known[call.id] = call
    if message.shape.server_calls:
        served = (block.value for block in message.blocks if block.type in SERVER_CALLS)
        known.update({value["id"]: read_call(value) for value in served})


def rewrite_result(block: Block, rewrite: Rewrite, by: str) -> Block | None:
    """Return the block with its content rewritten; None unless that makes it smaller.

    Smaller in characters, in bytes and in tokens: ideographs count differently in each.
    """
    content = rewrite(block.value.get("content", ""), block.id)
    new = Block(wire.encode({**block.value, "content": content}), by)
    is_shorter = len(new.text) < len(block.text)
    is_smaller = is_shorter and len(new.text.encode()) < len(block.text.encode())
    return new if is_smaller and new.tokens < block.tokens else None


def keep_head(content: Content, recall: str, limit: int, *, is_whole: bool) -> Content:
    """Keep the first `limit` characters without splitting a grapheme, and say how many there were.

    Other blocks become a stub. `is_whole` is False if the content is not the original any more.
    """
    if isinstance(content, str):
        head = _keep_graphemes(content, limit)
        return f"{head}\n{_write_notice(len(head), len(content), recall, is_whole=is_whole)}"
    whole = sum(len(block["text"]) for block in content if block["type"] == "text")
    kept: list[dict[str, Any]] = []
    left = limit
    for block in content:
        if block["type"] != "text":
            kept.append({"type": "text", "text": f"[{block['type']} left out]"})
        elif left > 0 and (head := _keep_graphemes(block["text"], left)).strip():
            kept.append({"type": "text", "text": head})
            left -= len(head) if len(head) == len(block["text"]) else left
    if whole > limit:
        shown = sum(len(block["text"]) for block in kept) - _count_stub_chars(content)
        text = _write_notice(shown, whole, recall, is_whole=is_whole)
        kept.append({"type": "text", "text": text})
    return kept


def _keep_graphemes(text: str, most: int) -> str:
    return text[: graphemes.find_cut_before(text, most)]


def shorten_texts(content: Content, recall: str, limit: int, *, is_text: bool = False) -> Content:
    """Shorten the texts so that together they are within `limit` characters.

    `is_text`: keep head and tail even of JSON.
    """
    make = shorten_text if is_text else shorten
    if isinstance(content, str):
        return make(content, limit, recall)
    texts = [block["text"] for block in content if block["type"] == "text"]
    level = find_water_level(list(map(len, texts)), limit)
    if level < _LEAST:
        others = [block for block in content if block["type"] != "text"]
        joined = make("\n".join(texts), limit, recall)
        return [{"type": "text", "text": joined}, *others]
    return [
        {**block, "text": make(block["text"], level, recall)} if block["type"] == "text" else block
        for block in content
    ]


def shorten_to_text(content: Content, recall: str, limit: int, *, is_text: bool = False) -> Content:
    """Shorten a result's texts; blocks that are not text become a stub."""
    if isinstance(content, list):
        content = [
            block
            if block["type"] == "text"
            else {"type": "text", "text": f"[{block['type']} left out]"}
            for block in content
        ]
    return shorten_texts(content, recall, limit, is_text=is_text)


def _write_notice(shown: int, whole: int, recall: str, *, is_whole: bool) -> str:
    text = write_cut_notice(shown, whole, recall)
    return text if is_whole else text.replace(" of ", " of more than ", 1)


def _count_stub_chars(content: list[dict[str, Any]]) -> int:
    return sum(len(f"[{block['type']} left out]") for block in content if block["type"] != "text")
