"""Server-side context editing: clear old tool results and thinking for this request only.

The client's history is unchanged and stays what signatures are checked against; the answer says how
much was cleared, never what.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentweb.emulator import json_codec
from agentweb.emulator.call import Call
from agentweb.emulator.canonical_blocks import as_blocks
from agentweb.emulator.prompt_units import TokenCounter, total_tokens

_CLEARED = "[Old tool result cleared by context management]"
_TRIGGER = 100_000
_KEEP = 3
_THOUGHT = frozenset({"thinking", "redacted_thinking"})


@dataclass(frozen=True, slots=True)
class Edited:
    body: json_codec.Object
    #: `context_management.applied_edits` of the response; None if no edits were configured.
    applied: list[json_codec.Object] | None


def edit_context(body: json_codec.Object, call: Call, counter: TokenCounter, tokens: int) -> Edited:
    config = body.get("context_management")
    if config is None:
        return Edited(body, None)
    applied: list[json_codec.Object] = []
    for edit in config.get("edits") or ():
        changed, cleared = _apply(edit, body, tokens)
        if not cleared:
            continue
        left = total_tokens(counter.count_units(changed, call.model.tokenizer))
        least = (edit.get("clear_at_least") or {}).get("value", 0)
        if tokens - left < max(1, least):
            continue
        kind = edit["type"]
        what = (
            "cleared_thinking_turns" if kind.startswith("clear_thinking") else "cleared_tool_uses"
        )
        applied.append({"type": kind, what: cleared, "cleared_input_tokens": tokens - left})
        body, tokens = changed, left
    return Edited(body, applied)


def _apply(
    edit: json_codec.Object, body: json_codec.Object, tokens: int
) -> tuple[json_codec.Object, int]:
    match edit["type"]:
        case "clear_thinking_20251015":
            return _clear_thinking(edit, body)
        case "clear_tool_uses_20250919":
            return _clear_tool_uses(edit, body, tokens)
        case _:
            return body, 0


def _clear_thinking(
    edit: json_codec.Object, body: json_codec.Object
) -> tuple[json_codec.Object, int]:
    keep = edit.get("keep", {"type": "thinking_turns", "value": 1})
    if keep == "all" or keep.get("type") == "all":
        return body, 0
    thoughtful = [
        index
        for index, message in enumerate(body["messages"])
        if any(block["type"] in _THOUGHT for block in as_blocks(message["content"]))
    ]
    cleared = set(thoughtful[: max(0, len(thoughtful) - keep["value"])])
    messages = [
        message
        | {"content": [b for b in as_blocks(message["content"]) if b["type"] not in _THOUGHT]}
        if index in cleared
        else message
        for index, message in enumerate(body["messages"])
    ]
    return body | {"messages": [message for message in messages if message["content"]]}, len(
        cleared
    )


def _clear_tool_uses(
    edit: json_codec.Object, body: json_codec.Object, tokens: int
) -> tuple[json_codec.Object, int]:
    uses = [
        block
        for message in body["messages"]
        for block in as_blocks(message["content"])
        if block["type"] == "tool_use"
    ]
    trigger = edit.get("trigger") or {"type": "input_tokens", "value": _TRIGGER}
    figure = tokens if trigger["type"] == "input_tokens" else len(uses)
    if figure <= trigger["value"]:
        return body, 0
    spared = set(edit.get("exclude_tools") or ())
    keep = (edit.get("keep") or {}).get("value", _KEEP)
    old = uses[: max(0, len(uses) - keep)]
    cleared = {block["id"]: block["name"] for block in old if block["name"] not in spared}
    messages = [
        _cleared(message, cleared, edit.get("clear_tool_inputs")) for message in body["messages"]
    ]
    return body | {"messages": messages}, len(cleared)


def _cleared(
    message: json_codec.Object, cleared: dict[str, str], inputs: json_codec.Value
) -> json_codec.Object:
    if isinstance(message["content"], str):
        return message
    content = []
    for block in message["content"]:
        if block["type"] == "tool_result" and block["tool_use_id"] in cleared:
            content.append(block | {"content": _CLEARED})
        elif (
            block["type"] == "tool_use"
            and block["id"] in cleared
            and _clears(inputs, block["name"])
        ):
            content.append(block | {"input": {}})
        else:
            content.append(block)
    return message | {"content": content}


def _clears(inputs: json_codec.Value, name: str) -> bool:
    return name in inputs if isinstance(inputs, list) else bool(inputs)
