"""Faults in the content of an answer: unusual stop reasons, tool calls and texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from agentweb.emulator.faults.fault import Fault
from agentweb.emulator.scenes.scene import Block, Raw, Reply, Text, Think, ToolUse

_Change = Callable[[Reply, Fault], Reply]

_EMAIL = ToolUse(
    "write_file",
    {
        "path": "letter.txt",
        "content": "Dear reader, this letter is much longer than the limit lets it be. " * 8,
    },
)


def _texts(reply: Reply) -> tuple[Block, ...]:
    kept = tuple(block for block in reply.blocks if isinstance(block, Text))
    return kept or (Text("This is as far as I get."),)


def _half(reply: Reply) -> tuple[Block, ...]:
    full_text = "".join(block.text for block in _texts(reply) if isinstance(block, Text))
    return (Text(full_text[: max(1, len(full_text) // 2)]),)


def _cut_tool(reply: Reply, fault: Fault) -> Reply:
    text = '{"path":"letter.txt","content":"Dear reader, this letter is mu'
    cut = replace(_EMAIL, input={"path": "letter.txt"}, broken_json=text)
    before = () if fault.arg == "bare" else (Text("I write the letter now."),)
    return Reply((*before, cut), "max_tokens")


def _pause(reply: Reply, fault: Fault) -> Reply:
    return Reply(() if fault.arg == "empty" else (Text("I am still at it."),), "pause_turn")


def _bad_json(reply: Reply, fault: Fault) -> Reply:
    return Reply((ToolUse("read_file", {}, broken_json='{"path": "notes.txt", "offset": }'),))


def _many(reply: Reply, fault: Fault) -> Reply:
    return Reply(tuple(ToolUse("current_time", {"zone": "UTC"}) for _ in range(fault.number(50))))


def _same_ids(reply: Reply, fault: Fault) -> Reply:
    twice = ToolUse("current_time", {}, id="toolu_01Same")
    return Reply((twice, twice))


def _server_tool(reply: Reply, fault: Fault) -> Reply:
    use = {
        "type": "server_tool_use",
        "id": "srvtoolu_01Search",
        "name": "web_search",
        "input": {"query": "weather"},
    }
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_01Search", "content": []}
    return Reply((Raw(use), Raw(result), *_texts(reply)))


_CHANGES: dict[str, _Change] = {
    "max_tokens": lambda reply, _: Reply(_half(reply), "max_tokens"),
    "max_tokens_tool": _cut_tool,
    "window": lambda reply, _: Reply(_half(reply), "model_context_window_exceeded"),
    "pause_turn": _pause,
    "refusal": lambda _, __: Reply(
        (), "refusal", {"type": "refusal", "category": "cyber", "explanation": None}
    ),
    "refusal_null": lambda _, __: Reply((), "refusal"),
    "refusal_partial": lambda reply, _: Reply(
        _half(reply), "refusal", {"type": "refusal", "category": None, "explanation": None}
    ),
    "empty": lambda _, __: Reply((), "end_turn"),
    "blank_first": lambda reply, _: replace(
        reply, blocks=(Text("\n\n"), Think(reply.thinking or "I think."), *reply.blocks)
    ),
    "no_thinking": lambda reply, _: replace(reply, is_thoughtless=True),
    "blank": lambda _, __: Reply((Text(" \n"),), "end_turn"),
    "unknown_stop": lambda reply, _: Reply(_texts(reply), "meditation"),
    "unknown_block": lambda reply, _: Reply(
        (Raw({"type": "hologram", "data": "x"}), *_texts(reply))
    ),
    "bad_json_tool": _bad_json,
    "wrong_input_tool": lambda _, __: Reply((ToolUse("read_file", {"path": 17, "colour": "red"}),)),
    "unknown_tool": lambda _, __: Reply((ToolUse("launch_rocket", {"when": "now"}),)),
    "many_tools": _many,
    "same_tool_ids": _same_ids,
    "tool_without_stop": lambda _, __: Reply((ToolUse("current_time", {}),), "end_turn"),
    "stop_without_tool": lambda reply, _: Reply(_texts(reply), "tool_use"),
    "loop": lambda _, __: Reply((ToolUse("list_files", {}),)),
    "nul": lambda _, __: Reply((Text("A NUL \x00 and a lone surrogate \ud83d in one text."),)),
    "redacted": lambda reply, _: Reply(
        (Raw({"type": "redacted_thinking", "data": ""}), *_texts(reply))
    ),
    "server_tool": _server_tool,
}
NAMES = frozenset(_CHANGES)


def change_reply(reply: Reply, fault: Fault) -> Reply:
    change = _CHANGES.get(fault.name)
    return change(reply, fault) if change else reply
