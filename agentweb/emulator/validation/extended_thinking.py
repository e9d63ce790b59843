"""On models with extended thinking, a final assistant turn must begin with its thinking."""

from __future__ import annotations

from agentweb.emulator import json_codec
from agentweb.emulator.canonical_blocks import as_blocks
from agentweb.emulator.errors import Invalid


def check_thinking_start(body: json_codec.Object) -> None:
    config = body.get("thinking") or {}
    if config.get("type") != "enabled":
        return
    messages = body["messages"]
    if messages[-1]["role"] == "user" and not _in_tool_turn(messages):
        return
    for index in range(len(messages) - 1, -1, -1):
        if messages[index]["role"] == "assistant":
            content = as_blocks(messages[index]["content"])
            first = content[0]["type"] if content else "text"
            if first not in {"thinking", "redacted_thinking"}:
                raise Invalid(
                    f"messages.{index}.content.0.type: Expected `thinking` or "
                    f"`redacted_thinking`, but found "
                    f"`{first}`. When `thinking` is enabled, a final `assistant` "
                    f"message must start with a thinking "
                    "block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
                )
            return


def _in_tool_turn(messages: list[json_codec.Object]) -> bool:
    return any(block["type"] == "tool_result" for block in as_blocks(messages[-1]["content"]))
