"""A scene answers a request in the model's place, or leaves it to the next scene.

Plain Python functions, chosen against a script file format: a scene decides only from what is in
view of the request, and reading a view takes code. Nothing is kept between requests, so a fact
trimmed away is really gone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from agentweb.emulator import json_codec
from agentweb.emulator.scenes.view import Request


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    #: Text between tool calls; some models send it as thinking.
    narration: bool = False
    #: The sources of the text, as the API reports them.
    citations: tuple[json_codec.Object, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolUse:
    name: str
    input: json_codec.Object
    #: Set only to violate the protocol on purpose.
    id: str = ""
    #: Streamed instead of the input, to violate the protocol on purpose.
    broken_json: str = ""


@dataclass(frozen=True, slots=True)
class Raw:
    """A block that is complete in its start event."""

    block: json_codec.Object


@dataclass(frozen=True, slots=True)
class Think:
    """Thinking at its place in the reply; without one, thinking comes first."""

    text: str
    #: Fewest tokens it takes, however few are shown.
    least: int = 0


@dataclass(frozen=True, slots=True)
class ServerUse:
    """A tool that runs on the API's side: its call and its result."""

    name: str
    input: json_codec.Object
    #: None while it has not run: the answer to the next request begins with the result.
    result: json_codec.Value
    #: Runs together with the next call: the results follow the last of them.
    is_joined: bool = False


Block: TypeAlias = Text | Think | ToolUse | ServerUse | Raw


@dataclass(frozen=True, slots=True)
class Reply:
    blocks: tuple[Block, ...]
    #: Empty means `tool_use` if a tool is called, else `end_turn`.
    stop_reason: str = ""
    stop_details: json_codec.Object | None = None
    #: The thinking before the answer, if the request allows thinking.
    thinking: str = ""
    #: The model may think but does not.
    is_thoughtless: bool = False
    #: Results of calls that an earlier answer left open; the answer begins with them.
    results: tuple[Raw, ...] = ()

    @property
    def effective_stop(self) -> str:
        if self.stop_reason:
            return self.stop_reason
        calls = any(isinstance(block, ToolUse) for block in self.blocks)
        return "tool_use" if calls else "end_turn"


Scene: TypeAlias = Callable[[Request], Reply | None]


def say(text: str, *, thinking: str = "") -> Reply:
    return Reply((Text(text),), thinking=thinking)


def call(*uses: ToolUse, saying: str = "", noting: str = "", thinking: str = "") -> Reply:
    """Call tools, after a narration that may become thinking and notes that stay text."""
    blocks: list[Block] = []
    if saying:
        blocks.append(Text(saying, narration=True))
    if noting:
        blocks.append(Text(noting))
    return Reply((*blocks, *uses), thinking=thinking)
