"""Ways to break a valid conversation, each with words of the refusal it must meet."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.emulator.samples import RESULT, RESULT_2, TEXT, TOOL, USE, USE_2, assistant, user

Body = dict[str, Any]
Change = Callable[[Body, Random], bool]


@dataclass(frozen=True)
class Corruption:
    name: str
    text: str
    #: Breaks the body in place; False if the body has nothing to break this way.
    change: Change


def small_talk() -> Body:
    """A valid conversation that has something of everything."""
    messages = [
        user(TEXT, TEXT),
        assistant(TEXT, USE, USE_2),
        user(RESULT, RESULT_2 | {"content": [TEXT], "is_error": True}),
        assistant(TEXT),
        user(TEXT),
    ]
    tools = [TOOL, TOOL | {"name": "write_file"}]
    body = {"model": "claude-sonnet-5-5", "max_tokens": 64, "messages": messages, "tools": tools}
    return copy.deepcopy(body)


def _places(body: Body, kind: str) -> list[tuple[Any, int]]:
    return [
        (message, at)
        for message in body["messages"]
        if isinstance(message["content"], list)
        for at, block in enumerate(message["content"])
        if block["type"] == kind
    ]


def _on(kind: str, act: Callable[[Any, int], None]) -> Change:
    """Act on a random block of one kind."""

    def change(body: Body, die: Random) -> bool:
        places = _places(body, kind)
        if places:
            act(*die.choice(places))
        return bool(places)

    return change


def _put(kind: str, **fields: Any) -> Change:
    def act(message: Any, at: int) -> None:
        message["content"][at].update(fields)

    return _on(kind, act)


def _without(kind: str, name: str) -> Change:
    def act(message: Any, at: int) -> None:
        message["content"][at].pop(name)

    return _on(kind, act)


def _delete(message: Any, at: int) -> None:
    message["content"][at : at + 1] = [] if len(message["content"]) > 1 else [TEXT]


def _twice(message: Any, at: int) -> None:
    message["content"].insert(at, copy.deepcopy(message["content"][at]))


def _to_front(message: Any, at: int) -> None:
    message["content"].insert(0, dict(TEXT))


def _swap_role(message: Any, at: int) -> None:
    message["role"] = "assistant" if message["role"] == "user" else "user"


def _root(**fields: Any) -> Change:
    def change(body: Body, die: Random) -> bool:
        body.update(fields)
        return True

    return change


def _messages(edit: Callable[[list[Any]], Any]) -> Change:
    def change(body: Body, die: Random) -> bool:
        body["messages"] = edit(body["messages"])
        return True

    return change


def _tool(**fields: Any) -> Change:
    def change(body: Body, die: Random) -> bool:
        if body["tools"]:
            die.choice(body["tools"]).update(fields)
        return bool(body["tools"])

    return change


def _second_result(body: Body, die: Random) -> bool:
    """Move a result one exchange later."""
    places = _places(body, "tool_result")
    if places:
        message, at = places[0]
        block = message["content"].pop(at)
        message["content"].append(dict(TEXT))
        body["messages"] += [assistant(TEXT), user(block)]
    return bool(places)


MISSING = "without `tool_result` blocks immediately after"
ORPHAN = "unexpected `tool_use_id` found in `tool_result` blocks"
EXTRA = "Extra inputs are not permitted"

CORRUPTIONS = [
    Corruption("a result is gone", MISSING, _on("tool_result", _delete)),
    Corruption("a call is gone", ORPHAN, _on("tool_use", _delete)),
    Corruption("a call stands twice", "ids must be unique", _on("tool_use", _twice)),
    Corruption("a result stands twice", "must have a single result", _on("tool_result", _twice)),
    Corruption("text before results", MISSING, _on("tool_result", _to_front)),
    Corruption("a result comes late", "tool_", _second_result),
    Corruption(
        "a call by the user",
        "blocks can only be in `assistant` messages",
        _on("tool_use", _swap_role),
    ),
    Corruption("a result by the assistant", "tool_result", _on("tool_result", _swap_role)),
    Corruption("another result id", ORPHAN, _put("tool_result", tool_use_id="toolu_other")),
    Corruption("another call id", ORPHAN, _put("tool_use", id="toolu_other")),
    Corruption("a bad call id", "String should match pattern", _put("tool_use", id="a b")),
    Corruption("an empty call id", "String should match pattern", _put("tool_use", id="")),
    Corruption(
        "a bad call name", "String should match pattern", _put("tool_use", name="read file")
    ),
    Corruption(
        "an input that is a string",
        "Input should be a valid dictionary",
        _put("tool_use", input="{}"),
    ),
    Corruption(
        "an input that is null", "Input should be a valid dictionary", _put("tool_use", input=None)
    ),
    Corruption("an input that is missing", "Field required", _without("tool_use", "input")),
    Corruption("a name that is missing", "Field required", _without("tool_use", "name")),
    Corruption("an id that is missing", "Field required", _without("tool_use", "id")),
    Corruption(
        "a result id that is missing", "Field required", _without("tool_result", "tool_use_id")
    ),
    Corruption(
        "a result that is a number",
        "Input should be a valid string",
        _put("tool_result", content=7),
    ),
    Corruption("a call in a result", "Input tag 'tool_use'", _put("tool_result", content=[USE])),
    Corruption(
        "an error flag that is a word",
        "Input should be a valid boolean",
        _put("tool_result", is_error="yes"),
    ),
    Corruption("a stored field on a result", EXTRA, _put("tool_result", seq=3)),
    Corruption("a stored field on a text", EXTRA, _put("text", created="today")),
    Corruption("a stored field on a call", EXTRA, _put("tool_use", state="done")),
    Corruption("an empty text", "text content blocks must be non-empty", _put("text", text="")),
    Corruption("a blank text", "must contain non-whitespace text", _put("text", text=" \n\t")),
    Corruption("a text that is null", "Input should be a valid string", _put("text", text=None)),
    Corruption("an unknown block", "Input tag 'note'", _put("text", type="note")),
    Corruption(
        "forged thinking",
        "Invalid `signature` in `thinking` block",
        _messages(
            lambda m: [
                *m,
                assistant({"type": "thinking", "thinking": "x", "signature": "eA=="}, TEXT),
                user(TEXT),
            ]
        ),
    ),
    Corruption("no messages", "at least one message is required", _messages(lambda m: [])),
    Corruption("the first message gone", "messages", _messages(lambda m: m[1:])),
    Corruption(
        "an empty message",
        "must have non-empty content",
        _messages(lambda m: [*m, user(), assistant(TEXT), user(TEXT)]),
    ),
    Corruption(
        "an answer at the end",
        "does not support assistant message prefill",
        _messages(lambda m: [*m, assistant(TEXT)]),
    ),
    Corruption(
        "an open call at the end",
        MISSING,
        _messages(lambda m: [*m, assistant(USE | {"id": "toolu_open"})]),
    ),
    Corruption(
        "an unknown role",
        "Input should be 'user', 'assistant' or 'system'",
        _messages(lambda m: [*m, {"role": "tool", "content": "x"}]),
    ),
    Corruption(
        "a message without content",
        "content: Field required",
        _messages(lambda m: [*m, {"role": "user"}]),
    ),
    Corruption(
        "a message that is a string",
        "Input should be a valid dictionary",
        _messages(lambda m: [*m, "Hello"]),
    ),
    Corruption("an unknown parameter", EXTRA, _root(policy="adaptive")),
    Corruption("a temperature", "is deprecated for this model", _root(temperature=0.2)),
    Corruption(
        "too many tokens asked for",
        "maximum allowed number of output tokens",
        _root(max_tokens=200_000),
    ),
    Corruption(
        "no tokens asked for", "max_tokens: Input should be a valid integer", _root(max_tokens=None)
    ),
    Corruption("system as an object", "system: Input should be", _root(system={"text": "x"})),
    Corruption(
        "a blank system text",
        "system: text content blocks",
        _root(system=[{"type": "text", "text": " "}]),
    ),
    Corruption(
        "five marks",
        "A maximum of 4 blocks",
        _root(system=[TEXT | {"cache_control": {"type": "ephemeral"}}] * 5),
    ),
    Corruption(
        "a tool without schema", "Input should be a valid dictionary", _tool(input_schema=None)
    ),
    Corruption("a tool with a bad name", "String should match pattern", _tool(name="naïve tool")),
    Corruption("a tool with a stored field", EXTRA, _tool(effect="read")),
    Corruption("a forced tool", "tool_choice", _root(tool_choice={"type": "any"})),
]
