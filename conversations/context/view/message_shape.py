"""The facts of one message: its tool calls, their results, and any rule it breaks by itself.

A shape is read from the wire text once and kept with the message; the parsed blocks are not. So
steps read small facts of 10,000 messages instead of parsing 10,000 texts again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from conversations.context.errors import WireError
from conversations.context.tokens.media import is_large_image
from conversations.context.view import blocks, wire

#: Longest label of a tool call.
_LABEL = 100
#: Most other inputs of a call in its description, and the greatest length of each value.
_OTHERS, _VALUE = 4, 32
#: Input fields that best describe a call, best first.
_MAIN = ("url", "path", "file_path", "query", "command", "pattern", "id", "name")


@dataclass(frozen=True, slots=True)
class Call:
    """A tool_use: its id, the tool's name, and one line for people and models.

    `others` are its other short inputs, which distinguish calls with the same label.
    """

    id: str
    name: str
    label: str
    others: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """A tool_result at index `at`: characters of text, and blocks in it that are not text."""

    at: int
    id: str
    chars: int
    media: int
    is_error: bool


@dataclass(frozen=True, slots=True)
class Image:
    """An image: block `at` of the message, or a part of the tool result there.

    `result` is the id of that result's call, "" if there is none. `is_large`: the API takes it only
    where a request has few images.
    """

    at: int
    part: int
    result: str
    is_large: bool


@dataclass(frozen=True, slots=True)
class Shape:
    """The facts of one message.

    `flaw` is (rule, where, detail) of the first rule a block breaks by itself. `others`: the
    message has blocks other than tool results; `is_late`: a result follows such a block.
    `server_calls` and `server_results` are ids of tools that the API runs.
    """

    flaw: tuple[str, str, str] | None = None
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()
    server_calls: tuple[str, ...] = ()
    server_results: tuple[str, ...] = ()
    #: Ids of the API's calls that called our tools.
    callers: tuple[str, ...] = ()
    others: bool = False
    is_late: bool = False
    marks: int = 0
    #: Type of the first and the last block.
    first: str = ""
    last: str = ""
    #: Indexes of all compaction blocks, and of the signed ones.
    compactions: tuple[int, ...] = ()
    signed: tuple[int, ...] = ()
    images: tuple[Image, ...] = ()


def read_shape(role: str, content: str) -> Shape:
    """Read the shape of a message from its content's wire text."""
    try:
        values = wire.decode(content)
        flaw = blocks.find_flaw(role, values) or _find_early_result(values)
        flaw = flaw or _find_half_pair(content)
    except WireError as error:
        flaw = "content", "content", str(error)
    if flaw is not None:
        return Shape(flaw)
    types = [value["type"] for value in values]
    is_result = [name == "tool_result" for name in types]
    has_result_after_other_block = is_result != sorted(is_result, reverse=True)
    return Shape(
        calls=tuple(read_call(value) for value in values if value["type"] == "tool_use"),
        results=tuple(_read_result(at, values[at]) for at, found in enumerate(is_result) if found),
        server_calls=tuple(value["id"] for value in values if value["type"] in blocks.SERVER_CALLS),
        server_results=tuple(
            value["tool_use_id"] for value in values if blocks.is_server_result(value["type"])
        ),
        callers=tuple(call for value in values if (call := read_caller(value))),
        others=not all(is_result),
        is_late=has_result_after_other_block,
        marks=sum(map(blocks.count_breakpoints, values)),
        first=types[0] if types else "",
        last=types[-1] if types else "",
        compactions=tuple(at for at, name in enumerate(types) if name == "compaction"),
        signed=tuple(at for at, value in enumerate(values) if _is_signed(value)),
        images=tuple(_find_images(values)),
    )


def read_caller(value: dict[str, Any]) -> str:
    """Return the id of the API's call that called a tool of ours; "" if the model called it."""
    caller = value.get("caller") if value["type"] == "tool_use" else None
    named = caller.get("tool_id") if isinstance(caller, dict) else None
    return named if isinstance(named, str) else ""


def _find_early_result(values: list[dict[str, Any]]) -> tuple[str, str, str] | None:
    """Return the flaw of a result of the API's own tools before its call, or of a second one."""
    calls = {value["id"]: at for at, value in enumerate(values) if _is_served(value)}
    found: set[str] = set()
    for at, value in enumerate(values):
        if blocks.is_server_result(value["type"]):
            call = value["tool_use_id"]
            if call in found or calls.get(call, -1) > at:
                return "server_tool", f"content.{at}", f"no call {call} waits for a result there"
            found.add(call)
    return None


def _find_half_pair(content: str) -> tuple[str, str, str] | None:
    """Return the flaw of an escape that is one half of a surrogate pair, in any block."""
    if wire.clean_escapes(content) == content:
        return None
    broken = [text != wire.clean_escapes(text) for text in wire.split(content)]
    return "escape", f"content.{broken.index(True)}", "a text has one half of a surrogate pair"


def _is_served(value: dict[str, Any]) -> bool:
    return value["type"] in blocks.SERVER_CALLS


def _is_signed(value: dict[str, Any]) -> bool:
    return value["type"] == "compaction" and value.get("signature") is not None


def _find_images(values: list[dict[str, Any]]) -> Iterator[Image]:
    for at, value in enumerate(values):
        if value["type"] == "image":
            yield Image(at, 0, "", is_large_image(value["source"]))
        elif value["type"] == "tool_result" and isinstance(value.get("content"), list):
            for part, nested in enumerate(value["content"]):
                if nested["type"] == "image":
                    is_large = is_large_image(nested["source"])
                    yield Image(at, part, value["tool_use_id"], is_large)


def _read_result(at: int, value: dict[str, Any]) -> Result:
    content = value.get("content", "")
    is_error = value.get("is_error") is True
    if isinstance(content, str):
        return Result(at, value["tool_use_id"], len(content), 0, is_error)
    texts = [nested["text"] for nested in content if nested["type"] == "text"]
    media = len(content) - len(texts)
    return Result(at, value["tool_use_id"], sum(map(len, texts)), media, is_error)


def read_call(value: dict[str, Any]) -> Call:
    """Return what is known of a call of one of our tools, or of the API's own."""
    tool_input = read_input(value)
    main = _find_main(tool_input)
    others = [
        f"{_fit_line(key, _VALUE)}={_fit_line(str(item), _VALUE)}"
        for key, item in tool_input.items()
        if isinstance(item, str | int | float) and item not in (main, "")
    ]
    return Call(value["id"], _read_name(value), write_label(value), " ".join(others[:_OTHERS]))


# An imported call of the API's own may lack its name or a proper input.
def _read_name(value: dict[str, Any]) -> str:
    return str(value.get("name", value["type"]))


def read_input(value: dict[str, Any]) -> dict[str, Any]:
    """Return the input of a call; {} where it has no proper one."""
    tool_input = value.get("input")
    return tool_input if isinstance(tool_input, dict) else {}


def _find_main(tool_input: dict[str, Any]) -> str:
    """Return the input of a call that best describes it; "" if none does."""
    main = next((tool_input[key] for key in _MAIN if isinstance(tool_input.get(key), str)), None)
    if main is None:
        main = next((item for item in tool_input.values() if isinstance(item, str)), "")
    return str(main)


def write_label(value: dict[str, Any]) -> str:
    """Return one line that names a call for people and models: its tool and its main input."""
    return _fit_line(f"{_read_name(value)} {_find_main(read_input(value))}", _LABEL)


def _fit_line(text: str, most: int) -> str:
    return " ".join(text[: 3 * most].split())[:most]
