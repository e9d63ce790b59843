"""Canonical bytes of a block: the same meaning gives the same bytes, however it was written."""

from __future__ import annotations

import json

from agentweb.emulator import json_codec

_IGNORED = frozenset({"cache_control", "citations", "caller"})


def essence(value: json_codec.Value) -> bytes:
    """Return canonical bytes of a block or system prompt, without cache marks and shorthand."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":")).encode()


def tool_essence(tool: json_codec.Object) -> bytes:
    """Return canonical bytes of a tool; its schema is the caller's, so nothing in it is dropped."""
    kept = {key: value for key, value in tool.items() if key != "cache_control"}
    return json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()


def _plain(value: json_codec.Value) -> json_codec.Value:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") == "tool_use":
        # The input is the caller's data: a key named like one of ours must stay.
        return {"type": "tool_use", **{key: value.get(key) for key in ("id", "name", "input")}}
    plain = {key: _plain(item) for key, item in value.items() if key not in _IGNORED}
    if isinstance(plain.get("content"), str):
        text = plain["content"]
        plain["content"] = [{"type": "text", "text": text}] if text else []
    if plain.get("is_error") is False:
        del plain["is_error"]
    return plain


def as_blocks(content: json_codec.Value) -> list[json_codec.Object]:
    """Return content as a list of blocks; a string is shorthand for one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content)
