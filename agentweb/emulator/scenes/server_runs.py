"""Server tools: the result of each for an input.

A result depends on the input and the request only, so a call that an earlier answer left open gets
the result that it would have got there. An input that contains `fails` gives the tool's error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from agentweb.emulator import json_codec
from agentweb.emulator.scenes.container import edit_text, run_python, run_shell
from agentweb.emulator.scenes.scene import Raw
from agentweb.emulator.scenes.view import Request, blocks
from agentweb.emulator.scenes.web_pages import fetch, found_page

_WORDS = re.compile(r"\b(\d+) words each\b", re.IGNORECASE)


def run_server_tool(
    request: Request, name: str, tool_input: json_codec.Object, number: int
) -> json_codec.Value:
    """Return the content of the result; `number` is the index of the call in the turn."""
    tool = request.server_tool(_OFFERED_AS.get(name, name)) or {}
    if "fails" in json_codec.encode(tool_input).decode(errors="replace"):
        return {"type": f"{name}_tool_result_error", "error_code": "unavailable"}
    if number >= (tool.get("max_uses") or number + 1):
        return {"type": f"{name}_tool_result_error", "error_code": "max_uses_exceeded"}
    return _RUNS[name](request, tool, tool_input)


def run_open_calls(request: Request) -> tuple[Raw, ...]:
    """Return results for the calls of the running turn that have none."""
    made: dict[str, int] = {}
    results = []
    done = {block.get("tool_use_id") for block in turn_blocks(request)}
    for block in turn_blocks(request):
        if block["type"] != "server_tool_use":
            continue
        name = block["name"]
        number = made[name] = made.get(name, -1) + 1
        if block["id"] not in done and name in _RUNS:
            content = run_server_tool(request, name, block["input"], number)
            kind = f"{name}_tool_result"
            results.append(Raw({"type": kind, "tool_use_id": block["id"], "content": content}))
    return tuple(results)


def turn_blocks(request: Request) -> Iterator[json_codec.Object]:
    """Yield the blocks after the latest prompt of the user."""
    for message in request.messages[request.prompt_at + 1 :]:
        yield from blocks(message)


def _search(
    request: Request, tool: json_codec.Object, tool_input: json_codec.Object
) -> json_codec.Value:
    words = _WORDS.search(request.prompt)
    return [found_page(tool, str(tool_input.get("query")), int(words[1]) if words else 12)]


_Run = Callable[[Request, json_codec.Object, json_codec.Object], json_codec.Value]
_RUNS: Mapping[str, _Run] = {
    "web_search": _search,
    "web_fetch": lambda request, tool, tool_input: fetch(tool, tool_input),
    "code_execution": lambda request, tool, tool_input: run_python(tool_input),
    "bash_code_execution": lambda request, tool, tool_input: run_shell(tool_input),
    "text_editor_code_execution": lambda request, tool, tool_input: edit_text(tool_input),
}
#: The offered tool of each called sub-tool.
_OFFERED_AS = dict.fromkeys(("bash_code_execution", "text_editor_code_execution"), "code_execution")
