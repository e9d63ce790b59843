"""An answer put together from the events of its stream, trusting none of them.

Blocks are kept as wire text. A stream that breaks the protocol (two starts, an unknown index, two
tool calls with one id, bad JSON) raises StreamError; unknown events and deltas are ignored, as the
API asks. Complete means: `message_stop` was seen and a stop reason is set.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from conversations.context import wire
from conversations.context.errors import ContextError, WireError
from conversations.usage import Usage, usage_from


class StreamError(ContextError):
    """The stream is not what the API promises."""

    code = "protocol_error"


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call as the model asked for it; `input` is its wire text."""

    id: str
    name: str
    input: str


@dataclass(frozen=True, slots=True)
class Grown:
    """What an event added for people to read."""

    text: str = ""
    thinking: str = ""
    tool: str = ""


@dataclass
class _Open:
    """A block on its way; `parts` are the pieces of its text, thinking or input."""

    start: dict[str, Any]
    parts: list[str] = field(default_factory=list)
    signature: str = ""
    citations: list[Any] = field(default_factory=list)
    is_closed: bool = False


@dataclass
class Answer:
    """Feed it events; read what has come so far at any moment."""

    id: str = ""
    stop_reason: str = ""
    is_complete: bool = False
    usage: Usage | None = None
    _usage: dict[str, Any] = field(default_factory=dict)
    _blocks: list[_Open] = field(default_factory=list)
    _started: bool = False

    def feed(self, event: dict[str, Any]) -> Grown:
        """Take one event; raises StreamError when it breaks the protocol."""
        try:
            return self._feed(event)
        except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
            raise StreamError(f"{event.get('type')}: {error}") from error

    def _feed(self, event: dict[str, Any]) -> Grown:
        match event.get("type"):
            case "message_start":
                if self._started:
                    raise StreamError("the message started twice")
                self._started = True
                self.id = str(event["message"]["id"])
                self._report(event["message"].get("usage"))
            case "content_block_start":
                return self._start_block(event["index"], event["content_block"])
            case "content_block_delta":
                return self._grow(self._blocks[self._at(event["index"])], event["delta"])
            case "content_block_stop":
                self._close(self._blocks[self._at(event["index"])])
            case "message_delta":
                self.stop_reason = str(event["delta"].get("stop_reason") or "")
                self._report(event.get("usage"))
            case "message_stop":
                self._stop()
        return Grown()

    def _start_block(self, index: int, block: dict[str, Any]) -> Grown:
        if not self._started or index != len(self._blocks):
            raise StreamError(f"block {index} started out of order")
        opened = _Open(dict(block))
        self._blocks.append(opened)
        if block["type"] == "tool_use":
            if [o.start.get("id") for o in self._blocks].count(block["id"]) > 1:
                raise StreamError(f"two tool calls have the id {block['id']}")
            return Grown(tool=str(block["name"]))
        return Grown(text=str(block.get("text", "")) if block["type"] == "text" else "")

    def _at(self, index: int) -> int:
        if not 0 <= index < len(self._blocks) or self._blocks[index].is_closed:
            raise StreamError(f"block {index} is not open")
        return index

    def _grow(self, block: _Open, delta: dict[str, Any]) -> Grown:
        match delta.get("type"):
            case "text_delta":
                block.parts.append(delta["text"])
                return Grown(text=delta["text"])
            case "thinking_delta":
                block.parts.append(delta["thinking"])
                return Grown(thinking=delta["thinking"])
            case "input_json_delta":
                block.parts.append(delta["partial_json"])
            case "signature_delta":
                block.signature = delta["signature"]
            case "citations_delta":
                block.citations.append(delta["citation"])
        return Grown()

    def _close(self, block: _Open) -> None:
        block.is_closed = True
        if block.start["type"] == "tool_use":
            _input(block)

    def _stop(self) -> None:
        if not self.stop_reason or not all(block.is_closed for block in self._blocks):
            raise StreamError("the message stopped before it was whole")
        self.is_complete = True

    def _report(self, usage: Any) -> None:
        # Figures are cumulative: the last one of each name counts, and none is ever added.
        if isinstance(usage, dict):
            self._usage |= {name: value for name, value in usage.items() if value is not None}
            self.usage = usage_from(self._usage)

    @property
    def text(self) -> str:
        return "".join(
            block.start.get("text", "") + "".join(block.parts)
            for block in self._blocks
            if block.start["type"] == "text"
        )

    @property
    def thinking(self) -> str:
        return "".join(
            "".join(block.parts) for block in self._blocks if block.start["type"] == "thinking"
        )

    @property
    def blocks(self) -> tuple[str, ...]:
        """Wire texts of what may be sent back: whole blocks, and text however far it came.

        Tool calls are there only in an answer that is complete and stopped to use tools.
        """
        keeps_tools = self.is_complete and self.stop_reason == "tool_use"
        texts = (_text(block, keeps_tools=keeps_tools) for block in self._blocks)
        return tuple(text for text in texts if text)

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """The tool calls to run; empty unless the answer stopped to use tools."""
        if not (self.is_complete and self.stop_reason == "tool_use"):
            return ()
        return tuple(
            ToolUse(str(block.start["id"]), str(block.start["name"]), _input(block))
            for block in self._blocks
            if block.start["type"] == "tool_use"
        )


def _text(block: _Open, *, keeps_tools: bool) -> str:
    """Give a block's wire text, or "" when it must not be sent back."""
    start, grown = block.start, wire.clean("".join(block.parts))
    match start["type"]:
        case "text":
            text = start.get("text", "") + grown
            cited = {"citations": block.citations} if block.citations else {}
            return wire.encode({"type": "text", "text": text} | cited) if text.strip() else ""
        case "thinking":
            signature = block.signature or start.get("signature", "")
            if not block.is_closed or not signature:
                return ""
            thinking = start.get("thinking", "") + grown
            return wire.encode({"type": "thinking", "thinking": thinking, "signature": signature})
        case "tool_use":
            if not keeps_tools:
                return ""
            head = wire.encode({"type": "tool_use", "id": start["id"], "name": start["name"]})
            return head[:-1] + ',"input":' + _input(block) + "}"
        case _:
            return wire.encode(start) if block.is_closed else ""


def _input(block: _Open) -> str:
    """Give a tool call's input as the model wrote it; an empty one is an empty object."""
    raw = wire.clean("".join(block.parts)).strip()
    text = raw or wire.encode(block.start.get("input") or {})
    try:
        value = wire.decode(text)
    except WireError as error:
        raise StreamError(f"the input of {block.start.get('name')} is {error}") from error
    if not isinstance(value, dict):
        raise StreamError(f"the input of {block.start.get('name')} is not an object")
    return text
