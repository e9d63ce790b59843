"""System messages among the others: on which models and in which places they may stand."""

from __future__ import annotations

from agentweb.emulator import json_codec
from agentweb.emulator.canonical_blocks import as_blocks
from agentweb.emulator.errors import Invalid
from agentweb.emulator.model_catalogue import Model
from agentweb.emulator.validation.message_shape import TOOL_CHANGES_BETA


def check_system_messages(body: json_codec.Object, model: Model, betas: frozenset[str]) -> None:
    messages = body["messages"]
    known = {tool["name"] for tool in body.get("tools") or () if "name" in tool}
    for index, message in enumerate(messages):
        if message["role"] != "system":
            continue
        if not model.system_messages:
            raise Invalid(
                'messages: Unexpected role "system". The Messages API accepts a '
                "top-level `system` parameter, "
                'not "system" as an input message role.'
            )
        if index == 0:
            raise Invalid("messages.0: a `system` message cannot be the first message")
        if not _may_follow(messages, index):
            raise Invalid(
                f"messages.{index}: a `system` message must follow a `user` message, or "
                f"an `assistant` message "
                "that ends with a server tool result"
            )
        following = (later["role"] for later in messages[index + 1 :])
        if next((role for role in following if role != "system"), "assistant") != "assistant":
            raise Invalid(
                f"messages.{index}: a `system` message must be the last message or be "
                f"followed by an `assistant` message"
            )
        _check_changes(index, message, known, betas)


def _may_follow(messages: list[json_codec.Object], index: int) -> bool:
    """Return whether a system message may be at `index`; in a row of them the first decides."""
    while index and messages[index]["role"] == "system":
        index -= 1
    before = messages[index]
    if before["role"] == "user":
        return True
    content = as_blocks(before["content"])
    return (
        before["role"] == "assistant"
        and bool(content)
        and content[-1]["type"].endswith("_tool_result")
    )


def _check_changes(
    index: int, message: json_codec.Object, known: set[str], betas: frozenset[str]
) -> None:
    """Check changes of the tool list by name; each name must have been defined before."""
    for at, block in enumerate(as_blocks(message["content"])):
        if block["type"] not in {"tool_addition", "tool_removal"}:
            continue
        path = f"messages.{index}.content.{at}"
        if TOOL_CHANGES_BETA not in betas:
            kind = block["type"]
            raise Invalid(f"{path}: `{kind}` blocks require anthropic-beta: {TOOL_CHANGES_BETA}")
        tool = block["tool"]
        if tool["type"] == "tool_definition":
            known.add(str(tool["definition"].get("name")))
        elif tool["type"] == "tool_reference" and tool["name"] not in known:
            raise Invalid(
                f"{path}.{block['type']}.tool: Tool '{tool['name']}' is not defined at this "
                f"position in the conversation",
                code="tool_reference_unresolved",
            )
