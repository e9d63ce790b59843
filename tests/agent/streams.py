"""Event lists as the API streams them."""

from __future__ import annotations

import json
from typing import Any

Events = list[dict[str, Any]]
USAGE = {"input_tokens": 100, "output_tokens": 1}


def start(usage: dict[str, Any] | None = USAGE) -> dict[str, Any]:
    message: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant"}
    return {"type": "message_start", "message": message | {"content": [], "usage": usage}}


def opened(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": fields}


def closed(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def ended(reason: str | None, output: int = 7, **usage: Any) -> Events:
    figures = {"output_tokens": output} | usage
    stop = {"stop_reason": reason, "stop_sequence": None}
    return [
        {"type": "message_delta", "delta": stop, "usage": figures},
        {"type": "message_stop"},
    ]


def text(index: int, *parts: str) -> Events:
    grown = [delta(index, type="text_delta", text=part) for part in parts]
    return [opened(index, {"type": "text", "text": ""}), *grown, closed(index)]


def thought(index: int, words: str = "hm", signature: str = "c2ln") -> Events:
    return [
        opened(index, {"type": "thinking", "thinking": "", "signature": ""}),
        delta(index, type="thinking_delta", thinking=words),
        delta(index, type="signature_delta", signature=signature),
        closed(index),
    ]


def use(index: int, id: str, name: str = "look", input: Any = None) -> Events:
    """A tool call; an input that is a string is streamed as it is."""
    raw = input if isinstance(input, str) else json.dumps({} if input is None else input)
    half = len(raw) // 2
    return [
        opened(index, {"type": "tool_use", "id": id, "name": name, "input": {}}),
        delta(index, type="input_json_delta", partial_json=""),
        delta(index, type="input_json_delta", partial_json=raw[:half]),
        delta(index, type="input_json_delta", partial_json=raw[half:]),
        closed(index),
    ]


def complete_block(block: dict[str, Any], index: int = 0) -> Events:
    return [opened(index, block), closed(index)]


def says(words: str, reason: str = "end_turn", **usage: Any) -> Events:
    """A whole answer of one text."""
    return [start(), *text(0, words), *ended(reason, **usage)]


def calls(*ids: str, name: str = "look", input: Any = None) -> Events:
    """A whole answer that asks for tools."""
    found: Events = [start()]
    for index, call in enumerate(ids):
        found += use(index, call, name, input)
    return [*found, *ended("tool_use")]
