"""Ways to corrupt a valid conversation, each with the error it must be refused with.

A corruption returns the path that the error must begin with: "" where the API names none, None
where the conversation has nothing that can be corrupted this way.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.emulator.samples import (
    EXTRA,
    HOUR,
    MARK,
    RESULT,
    RESULT_2,
    TEXT,
    TOOL,
    USE,
    USE_2,
    assistant,
    user,
)

Body = dict[str, Any]
Change = Callable[[Body, Random], str | None]
#: The path of the error, from the body and the indexes of the changed message and block.
Where = Callable[[Body, int, int], str]


@dataclass(frozen=True)
class Corruption:
    name: str
    text: str
    change: Change


def small_talk() -> Body:
    """Return a valid conversation with every kind of block."""
    messages = [
        user(TEXT, TEXT),
        assistant(TEXT, USE, USE_2),
        user(RESULT, RESULT_2 | {"content": [TEXT], "is_error": True}),
        assistant(TEXT),
        user(TEXT),
    ]
    tools = [TOOL, TOOL | {"name": "write_file"}]
    body = {"model": "claude-sonnet-5-5", "max_tokens": 64, "messages": messages, "tools": tools}
    # Messages must not share blocks, so that each can be broken alone.
    copied: Body = json.loads(json.dumps(body))
    return copied


def _places(body: Body, kind: str) -> list[tuple[int, int]]:
    return [
        (index, at)
        for index, message in enumerate(body["messages"])
        if isinstance(message["content"], list)
        for at, block in enumerate(message["content"])
        if block["type"] == kind
    ]


def _here(suffix: str = "", shift: int = 0) -> Where:
    return lambda body, index, at: f"messages.{index}.content.{at + shift}{suffix}"


def _message(body: Body, index: int, at: int) -> str:
    return f"messages.{index}"


def _asked_in(body: Body, index: int, at: int) -> str:
    """Return the path of the message whose calls the results of this one answer."""
    while body["messages"][index]["role"] != "assistant":
        index -= 1
    return f"messages.{index}"


def _result_of(body: Body, index: int, call_id: str) -> str:
    for found, at in _places(body, "tool_result"):
        if found > index and body["messages"][found]["content"][at]["tool_use_id"] == call_id:
            return f"messages.{found}.content.{at}"
    raise AssertionError("a recorded call has its result")


def _on(kind: str, act: Callable[[Any, int], None], where: Where, role: str = "") -> Change:
    """Change a random block of one kind, optionally only in messages of one role."""

    def change(body: Body, die: Random) -> str | None:
        places = [p for p in _places(body, kind) if role in ("", body["messages"][p[0]]["role"])]
        if not places:
            return None
        index, at = die.choice(places)
        act(body["messages"][index], at)
        return where(body, index, at)

    return change


def _put(kind: str, suffix: str, **fields: Any) -> Change:
    def act(message: Any, at: int) -> None:
        message["content"][at].update(fields)

    return _on(kind, act, _here(suffix))


def _without(kind: str, name: str) -> Change:
    def act(message: Any, at: int) -> None:
        message["content"][at].pop(name)

    return _on(kind, act, _here(f".{kind}.{name}"))


def _orphan(act: Callable[[Any, int], None]) -> Change:
    """Corrupt a call; the error names its result."""

    def change(body: Body, die: Random) -> str | None:
        places = _places(body, "tool_use")
        if not places:
            return None
        index, at = die.choice(places)
        path = _result_of(body, index, body["messages"][index]["content"][at]["id"])
        act(body["messages"][index], at)
        return path

    return change


def _delete(message: Any, at: int) -> None:
    message["content"][at : at + 1] = [] if len(message["content"]) > 1 else [dict(TEXT)]


def _twice(message: Any, at: int) -> None:
    message["content"].insert(at, copy.deepcopy(message["content"][at]))


def _to_front(message: Any, at: int) -> None:
    message["content"].insert(0, dict(TEXT))


def _swap_role(message: Any, at: int) -> None:
    message["role"] = "assistant" if message["role"] == "user" else "user"


def _rename(message: Any, at: int) -> None:
    message["content"][at]["id"] = "toolu_other"


def _root(path: str, **fields: Any) -> Change:
    def change(body: Body, die: Random) -> str | None:
        body.update(copy.deepcopy(fields))
        return path

    return change


def _messages(suffix: str | None, edit: Callable[[list[Any]], Any]) -> Change:
    """Edit the list; the error names the first added message, or none if `suffix` is None."""

    def change(body: Body, die: Random) -> str | None:
        count = len(body["messages"])
        body["messages"] = edit(body["messages"])
        return "" if suffix is None else f"messages.{count}{suffix}"

    return change


def _whole(edit: Callable[[list[Any]], Any]) -> Change:
    def change(body: Body, die: Random) -> str | None:
        body["messages"] = edit(body["messages"])
        return "messages"

    return change


def _tool(suffix: str, **fields: Any) -> Change:
    def change(body: Body, die: Random) -> str | None:
        if not body["tools"]:
            return None
        at = die.randrange(len(body["tools"]))
        body["tools"][at].update(fields)
        return f"tools.{at}.custom.{suffix}"

    return change


def _forced(body: Body, die: Random) -> str | None:
    body["tool_choice"] = {"type": "any"}
    return "" if body["tools"] else None


def _second_result(body: Body, die: Random) -> str | None:
    """Move a result to the next exchange."""
    places = _places(body, "tool_result")
    if not places:
        return None
    index, at = places[0]
    block = body["messages"][index]["content"].pop(at)
    body["messages"][index]["content"].append(dict(TEXT))
    body["messages"] += [assistant(TEXT), user(block)]
    return _asked_in(body, index, at)


MISSING = "`tool_use` ids were found without `tool_result` blocks immediately after"
ORPHAN = "unexpected `tool_use_id` found in `tool_result` blocks"
PATTERN = "String should match pattern"
NO_OBJECT = "Input should be a valid dictionary"
REQUIRED = "Field required"
FORGED = {"type": "thinking", "thinking": "x", "signature": "eA=="}
OPEN_SEARCH = {"type": "server_tool_use", "id": "srvtoolu_x", "name": "web_search", "input": {}}
LONE_PAGE = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_y", "content": []}

CORRUPTIONS = [
    Corruption("a result is gone", MISSING, _on("tool_result", _delete, _asked_in)),
    Corruption("a call is gone", ORPHAN, _orphan(_delete)),
    Corruption(
        "a call stands twice",
        "`tool_use` ids must be unique",
        _on("tool_use", _twice, _here(shift=1)),
    ),
    Corruption(
        "a result stands twice",
        "each tool_use must have a single result",
        _on("tool_result", _twice, _here(shift=1)),
    ),
    Corruption("text before results", MISSING, _on("tool_result", _to_front, _asked_in)),
    Corruption("a result comes late", MISSING, _second_result),
    Corruption(
        "a call by the user",
        "`tool_use` blocks can only be in `assistant` messages",
        _on("tool_use", _swap_role, _message),
    ),
    Corruption(
        "a result by the assistant",
        "`tool_result` blocks can only be in `user` messages",
        _on("tool_result", _swap_role, _message),
    ),
    Corruption("another result id", ORPHAN, _put("tool_result", "", tool_use_id="toolu_other")),
    Corruption("another call id", ORPHAN, _orphan(_rename)),
    Corruption("a bad call id", PATTERN, _put("tool_use", ".tool_use.id", id="a b")),
    Corruption("an empty call id", PATTERN, _put("tool_use", ".tool_use.id", id="")),
    Corruption(
        "a call id that is a number",
        "Input should be a valid string",
        _put("tool_use", ".tool_use.id", id=7),
    ),
    Corruption("a bad call name", PATTERN, _put("tool_use", ".tool_use.name", name="read file")),
    Corruption(
        "an input that is a string", NO_OBJECT, _put("tool_use", ".tool_use.input", input="{}")
    ),
    Corruption("an input that is null", NO_OBJECT, _put("tool_use", ".tool_use.input", input=None)),
    Corruption("an input that is missing", REQUIRED, _without("tool_use", "input")),
    Corruption("a name that is missing", REQUIRED, _without("tool_use", "name")),
    Corruption("an id that is missing", REQUIRED, _without("tool_use", "id")),
    Corruption("a result id that is missing", REQUIRED, _without("tool_result", "tool_use_id")),
    Corruption(
        "a result that is a number",
        "Input should be a valid string or a valid list",
        _put("tool_result", ".tool_result.content", content=7),
    ),
    Corruption(
        "a call in a result",
        "Input tag 'tool_use'",
        _put("tool_result", ".tool_result.content.0", content=[USE]),
    ),
    Corruption(
        "an error flag that is a word",
        "Input should be a valid boolean",
        _put("tool_result", ".tool_result.is_error", is_error="yes"),
    ),
    Corruption("a stored field on a result", EXTRA, _put("tool_result", ".tool_result.seq", seq=3)),
    Corruption("a stored field on a text", EXTRA, _put("text", ".text.created", created="today")),
    Corruption(
        "a stored field on a call", EXTRA, _put("tool_use", ".tool_use.state", state="done")
    ),
    Corruption(
        "an empty text",
        "text content blocks must be non-empty",
        _on("text", lambda m, at: m["content"][at].update(text=""), lambda *_: "messages"),
    ),
    Corruption(
        "a blank text",
        "text content blocks must contain non-whitespace text",
        _on("text", lambda m, at: m["content"][at].update(text=" "), lambda *_: "messages", "user"),
    ),
    Corruption(
        "a text that is null",
        "Input should be a valid string",
        _put("text", ".text.text", text=None),
    ),
    Corruption(
        "an unknown block", "Input tag 'note' found using 'type'", _put("text", "", type="note")
    ),
    Corruption(
        "a mark of two hours",
        "Input should be '5m' or '1h'",
        _put("text", ".text.cache_control.ttl", cache_control={"type": "ephemeral", "ttl": "2h"}),
    ),
    Corruption(
        "a citation of nothing",
        "Input tag 'hearsay' found using 'type'",
        _put("text", ".text.citations.0", citations=[{"type": "hearsay"}]),
    ),
    Corruption(
        "forged thinking",
        "Invalid `signature` in `thinking` block",
        _messages(".content.0", lambda m: [*m, assistant(FORGED, TEXT), user(TEXT)]),
    ),
    Corruption(
        "a search without its result",
        "`web_search` tool use with id `srvtoolu_x` was found without a corresponding",
        _messages("", lambda m: [*m, assistant(OPEN_SEARCH, TEXT), user(TEXT)]),
    ),
    Corruption(
        "a page nobody searched for",
        "unexpected `tool_use_id` found in `web_search_tool_result` blocks: srvtoolu_y",
        _messages(".content.0", lambda m: [*m, assistant(LONE_PAGE, TEXT), user(TEXT)]),
    ),
    Corruption("no messages", "at least one message is required", _whole(lambda m: [])),
    Corruption(
        "an empty message",
        "all messages must have non-empty content",
        _messages("", lambda m: [*m, user(), assistant(TEXT), user(TEXT)]),
    ),
    Corruption(
        "an answer at the end",
        "This model does not support assistant message prefill.",
        _messages(None, lambda m: [*m, assistant(TEXT)]),
    ),
    Corruption(
        "an open call at the end",
        MISSING,
        _messages("", lambda m: [*m, assistant(USE | {"id": "toolu_open"})]),
    ),
    Corruption(
        "an unknown role",
        "Input should be 'user', 'assistant' or 'system'",
        _messages(".role", lambda m: [*m, {"role": "tool", "content": "x"}]),
    ),
    Corruption(
        "a message without content",
        REQUIRED,
        _messages(".content", lambda m: [*m, {"role": "user"}]),
    ),
    Corruption("a message that is a string", NO_OBJECT, _messages("", lambda m: [*m, "Hello"])),
    Corruption("an unknown parameter", EXTRA, _root("policy", policy="adaptive")),
    Corruption(
        "a temperature", "`temperature` is deprecated for this model.", _root("", temperature=1)
    ),
    Corruption(
        "too many tokens asked for",
        "200000 > 128000, which is the maximum allowed number of output tokens",
        _root("max_tokens", max_tokens=200_000),
    ),
    Corruption(
        "no tokens asked for",
        "Input should be a valid integer",
        _root("max_tokens", max_tokens=None),
    ),
    Corruption(
        "a system prompt that is an object",
        "Input should be a valid string or a valid list",
        _root("system", system={"text": "x"}),
    ),
    Corruption(
        "a blank system text",
        "text content blocks must contain non-whitespace text",
        _root("system", system=[{"type": "text", "text": " "}]),
    ),
    Corruption(
        "five marks",
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        _root("", system=[TEXT | MARK] * 5),
    ),
    Corruption(
        "a long mark behind a short one",
        "a ttl='1h' cache_control block must not come after a ttl='5m'",
        _root("system.1.cache_control.ttl", system=[TEXT | MARK, TEXT | HOUR]),
    ),
    Corruption("a tool without schema", NO_OBJECT, _tool("input_schema", input_schema=None)),
    Corruption("a tool with a bad name", PATTERN, _tool("name", name="naïve tool")),
    Corruption("a tool with a stored field", EXTRA, _tool("effect", effect="read")),
    Corruption(
        "a forced tool",
        'tool_choice: type "tool" and "any" are not supported for this model.',
        _forced,
    ),
]
