"""Reassembles a stream and checks its grammar."""

from __future__ import annotations

import json
from typing import Any

_USES = frozenset({"tool_use", "server_tool_use"})


def assemble(events: list[tuple[str, Any]]) -> list[Any]:
    """Return the content blocks that a stream adds up to."""
    names = [name for name, _ in events if name != "ping"]
    assert names[0] == "message_start"
    assert names[-2:] == ["message_delta", "message_stop"]
    assert events[0][1]["message"]["content"] == []
    assert events[0][1]["message"]["stop_reason"] is None
    blocks: list[Any] = []
    partial = ""
    is_open = False
    for name, data in events:
        assert data["type"] == name
        match name:
            case "content_block_start":
                assert not is_open
                assert data["index"] == len(blocks)
                blocks.append(data["content_block"])
                is_open, partial = True, ""
            case "content_block_delta":
                assert is_open
                partial += _grow(blocks[-1], data["delta"])
            case "content_block_stop":
                assert is_open
                is_open = False
                if blocks[-1]["type"] in _USES:
                    blocks[-1]["input"] = json.loads(partial or "{}")
    return blocks


def _grow(block: Any, delta: Any) -> str:
    """Add a delta to its block; return the partial input JSON in it."""
    match delta["type"]:
        case "input_json_delta":
            return str(delta["partial_json"])
        case "citations_delta":
            block["citations"].append(delta["citation"])
        case "compaction_delta":
            block |= {name: delta[name] for name in ("content", "encrypted_content")}
        case kind:
            field = kind.removesuffix("_delta")
            block[field] += delta[field]
    return ""
