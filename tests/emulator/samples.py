"""Blocks, messages and texts from which the cases are built."""

from __future__ import annotations

from typing import Any

TOOL = {"name": "read_file", "description": "Reads.", "input_schema": {"type": "object"}}
USE = {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "a.txt"}}
USE_2 = USE | {"id": "toolu_2"}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "text"}
RESULT_2 = RESULT | {"tool_use_id": "toolu_2"}
TEXT = {"type": "text", "text": "Hello"}
MARK = {"cache_control": {"type": "ephemeral"}}
HOUR = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2lnbmF0dXJl"}
SEARCH = {"type": "web_search_20260318", "name": "web_search"}
SERVER_USE = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
SERVER_RESULT = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
COMPACTION = {"type": "compaction", "content": "Summary"}

NEEDS_RESULT = (
    "`tool_use` ids were found without `tool_result` blocks immediately after: {ids}. "
    "Each `tool_use` block must "
    "have a corresponding `tool_result` block in the next message."
)
NEEDS_USE = (
    "unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` "
    "block must have a corresponding "
    "`tool_use` block in the previous message."
)
NOT_EMPTY = (
    "all messages must have non-empty content except for the optional final assistant message"
)
EXTRA = "Extra inputs are not permitted"
ADAPTIVE = 'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
TTL_ORDER = "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block."


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def talk(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"messages": list(messages), "tools": [TOOL]} | fields


def words(**fields: Any) -> dict[str, Any]:
    return {"messages": [user(TEXT)]} | fields
