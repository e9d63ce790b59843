"""Where thinking may stand in a final assistant turn, on models with extended thinking and all."""

from __future__ import annotations

from agentweb.emulator import json_codec
from agentweb.emulator.call import Call
from agentweb.emulator.canonical_blocks import as_blocks
from agentweb.emulator.errors import Invalid

_SWITCHED_OFF = (
    "When thinking is disabled, an `assistant` message in the final position cannot contain "
    "`thinking`. To use thinking blocks, enable `thinking` in your request."
)


def check_final_thinking(call: Call) -> None:
    """Refuse thinking at the end of a message, and any in a prefilled one where it is off."""
    for index, message in enumerate(call.body["messages"]):
        content = as_blocks(message["content"])
        if message["role"] == "assistant" and content and content[-1]["type"] == "thinking":
            raise Invalid(
                f"messages.{index}: The final block in an assistant message cannot be `thinking`."
            )
    if message["role"] != "assistant" or not content:
        return
    if not call.model.prefill or call.thinks:
        return
    for at, block in enumerate(content):
        if block["type"] in {"thinking", "redacted_thinking"}:
            raise Invalid(f"messages.{index}.content.{at}: {_SWITCHED_OFF}")


def check_thinking_start(body: json_codec.Object) -> None:
    """Check that with extended thinking a final assistant turn begins with thinking."""
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
