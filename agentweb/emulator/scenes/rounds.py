"""An answer of rounds as the prompt spells them: `emulator:rounds=search,search+tool,say,pause`.

Each step between commas is a round. `search`, `fetch`, `bash`, `edit` and `tool` call, calls joined
by `+` run together; `tool` is a tool of the client. Calls before `pause` stay open and the turn
pauses; calls beside a `tool` stay open until its result is there. `say`, `think` and `blank` write
between rounds. A call with `!` fails. Behind the last step stands a text that cites every page
found, its cited parts kept apart by whitespace. Tools that are not offered are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from agentweb.emulator import json_codec
from agentweb.emulator.scenes.container import file_text
from agentweb.emulator.scenes.scene import Block, Reply, ServerUse, Text, Think, ToolUse
from agentweb.emulator.scenes.server_runs import run_server_tool, turn_blocks
from agentweb.emulator.scenes.view import Request
from agentweb.emulator.scenes.web_pages import cite_page, found_page

_ORDER = re.compile(r"emulator:rounds=([a-z!+,]+)")
#: For each word the tool it calls, and the tool that has to be offered for it.
_CALLS = {
    "search": ("web_search", "web_search"),
    "fetch": ("web_fetch", "web_fetch"),
    "bash": ("bash_code_execution", "code_execution"),
    "edit": ("text_editor_code_execution", "code_execution"),
}
_CLIENT_INPUTS: dict[str, json_codec.Object] = {
    "current_time": {"zone": "UTC"},
    "list_files": {"path": ""},
}
_WORDS: dict[str, Text | Think] = {
    "say": Text("I look further. ", narration=True),
    "think": Think("What is found so far is not enough yet."),
    "blank": Text("\n\n"),
}


@dataclass(frozen=True, slots=True)
class _Call:
    #: The tool's name; empty for a tool of the client.
    name: str
    number: int
    fails: bool


def play_rounds(request: Request) -> Reply | None:
    found = _ORDER.search(request.prompt)
    if found is None:
        return None
    topic, made, passed = _topic(request.prompt), _made(request), 0
    steps = list(_steps(request, found[1]))
    blocks: list[Block] = []
    for step, after in pairwise([*steps, None]):
        if not isinstance(step, list):
            blocks += [step] if step else []
            continue
        left = [call for call in step if call.number >= made]
        passed += len(step)
        if not step and (passed > made or (passed == made and not _goes_on(request))):
            return Reply(tuple(blocks), "pause_turn")
        if not left:
            # An earlier answer already contains everything up to here.
            blocks = []
        blocks += _make(request, left, topic, is_open=after == [])
        if any(not call.name for call in left):
            return Reply(tuple(blocks))
    return Reply((*blocks, *_conclude(request, steps, topic)))


def _steps(request: Request, order: str) -> Iterator[Text | Think | list[_Call]]:
    """Yield texts, calls, or an empty list for a pause."""
    number = 0
    for step in filter(None, order.split(",")):
        if step in _WORDS:
            yield _WORDS[step]
            continue
        calls = []
        for word in step.split("+"):
            name, offered = _CALLS.get(word.rstrip("!"), ("", ""))
            if (name and request.server_tool(offered)) or word == "tool":
                calls.append(_Call(name, number, word.endswith("!")))
                number += 1
        if calls or step == "pause":
            yield calls


def _make(request: Request, calls: list[_Call], topic: str, *, is_open: bool) -> Iterator[Block]:
    """Yield the calls; one beside a client tool stays open until that has run."""
    waits = is_open or any(not call.name for call in calls)
    for at, call in enumerate(calls):
        if not call.name:
            yield _client_call(request)
            continue
        tool_input = _input(call, topic)
        result = None if waits else run_server_tool(request, call.name, tool_input, call.number)
        yield ServerUse(call.name, tool_input, result, is_joined=at < len(calls) - 1)


def _client_call(request: Request) -> ToolUse:
    own = [name for name in request.tools if not request.server_tool(name)]
    name = next((name for name in own if name in _CLIENT_INPUTS), own[0] if own else "list_files")
    return ToolUse(name, _CLIENT_INPUTS.get(name, {}))


def _input(call: _Call, topic: str) -> json_codec.Object:
    words = f"{topic} {call.number + 1}" + (" fails" if call.fails else "")
    match call.name:
        case "web_search":
            return {"query": words}
        case "web_fetch":
            return {"url": f"https://pages.example/{words.replace(' ', '-')}"}
        case "text_editor_code_execution":
            path = f"/tmp/{words.replace(' ', '-')}.txt"  # noqa: S108 - of the container
            return {"command": "create", "path": path, "file_text": file_text(path)}
        case _:
            return {"command": f"echo {words}"}


def _conclude(
    request: Request, steps: list[Text | Think | list[_Call]], topic: str
) -> Iterator[Block]:
    searches = [
        call
        for step in steps
        if isinstance(step, list)
        for call in step
        if call.name == "web_search" and not call.fails
    ]
    yield Text("This is what I found: " if searches else "That is all I found.")
    for at, call in enumerate(searches):
        if at:
            yield Text(" " if at % 2 else "\n\n")
        query = _input(call, topic)["query"]
        page = found_page(request.server_tool("web_search") or {}, query)
        yield Text(f"The pages say everything about {query}.", citations=(cite_page(page, query),))


def _made(request: Request) -> int:
    """Count the calls since the latest prompt of the user."""
    return sum(b["type"] in {"server_tool_use", "tool_use"} for b in turn_blocks(request))


def _goes_on(request: Request) -> bool:
    """Return whether the request continues a paused turn."""
    return bool(request.messages) and request.messages[-1]["role"] == "assistant"


def _topic(prompt: str) -> str:
    words = re.sub(r"emulator:\S+", "", prompt)
    return " ".join(re.findall(r"\w+", words)[:4]).lower() or "tea"
