"""One content block of an answer in progress, and the wire text in which it may be sent back.

A block is kept only in a form that the API accepts back: what is in the log goes into every later
request, so one malformed block would make the conversation unusable. What cannot be sent back is
dropped; a tool call whose input is not a JSON object is kept with an empty input, and its result
describes the flaw.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from conversations.agent.tokenizer import CALL_TOKENS, Family
from conversations.context.errors import ContextError, WireError
from conversations.context.view import blocks, wire

#: Input nested deeper than this is rejected: a recursive reader would need as much stack.
MOST_DEPTH = 100
#: Blocks besides text, thinking and tool calls that the API accepts back.
_TAKEN_BACK = blocks.SERVER_CALLS | {"redacted_thinking"}
#: Fields of a compaction block, besides content and signature, that are sent back unchanged.
_COMPACTION_FIELDS = ("encrypted_content", "tool_changes")
#: Fields of a citation that the API sends and does not take back.
_NOT_TAKEN_BACK = frozenset({"file_id"})
#: Fields of a tool call, besides its input, that the API accepts back.
_CALL_FIELDS = ("type", "id", "name", "caller", "toolset_name", "server_name")


class StreamError(ContextError):
    """The stream does not follow the protocol."""

    code = "protocol_error"


@dataclass(frozen=True, slots=True)
class AddedText:
    """Text and thinking that one event added, to be shown."""

    text: str = ""
    thinking: str = ""


@dataclass(slots=True)
class BlockInProgress:
    """A block in progress: its start event, and the pieces of its text, thinking or input."""

    start: dict[str, Any]
    parts: list[str] = field(default_factory=list)
    signature: str = ""
    citations: list[dict[str, Any]] = field(default_factory=list)
    is_closed: bool = False

    @property
    def type(self) -> str:
        return str(self.start["type"])

    @property
    def is_call(self) -> bool:
        return self.type == "tool_use" or self.type in blocks.SERVER_CALLS

    @property
    def is_served(self) -> bool:
        """Whether it is a call or a result of a tool that the API runs."""
        return self.type in blocks.SERVER_CALLS or blocks.is_server_result(self.type)

    @property
    def grown(self) -> str:
        return "".join(self.parts)

    @property
    def is_blank(self) -> bool:
        """Whether it is text of whitespace alone, which the API puts between cited texts."""
        return self.type == "text" and not self.grown.strip()

    def grow(self, delta: dict[str, Any]) -> AddedText:
        """Apply a delta; ignores unknown types, raises StreamError for another block's type."""
        match self.type, delta.get("type"):
            case "text", "text_delta":
                return AddedText(text=self._add(delta["text"]))
            case "thinking", "thinking_delta":
                return AddedText(thinking=self._add(delta["thinking"]))
            case _, "input_json_delta" if self.is_call:
                self._add(delta["partial_json"])
            case "thinking", "signature_delta":
                self.signature = wire.clean(delta["signature"])
            case "compaction", "compaction_delta":
                self._add(delta.get("content") or "")
                self.signature = wire.clean(delta.get("signature") or self.signature)
            case "text", "citations_delta":
                self.citations += _citations([delta["citation"]])
            case _, ("text_delta" | "thinking_delta" | "input_json_delta"):
                raise StreamError(f"{delta['type']} does not belong to a block of {self.type[:40]}")
        return AddedText()

    def _add(self, piece: str) -> str:
        # NUL is legal in wire text, but must not reach what people read.
        text = wire.clean(piece)
        self.parts.append(text)
        return text.replace("\0", "\ufffd")

    def tokens(self, family: Family) -> int:
        """Count the tokens the model has written of this block so far."""
        if self.is_call:
            return family.count(f"{self.start['name']}{self.grown}") + CALL_TOKENS
        return family.count(self.grown)

    def input(self) -> tuple[str, str]:
        """Return a call's input as wire text and ""; or "{}" and what is wrong with it."""
        # An escape may come in two pieces, so the whole is cleaned.
        text = wire.clean_escapes(self.grown.strip())
        text = text or wire.encode(self.start.get("input") or {})
        try:
            value = demand_shallow(wire.decode(text))
        except (WireError, StreamError) as error:
            return "{}", f"{error}. It began: {text[:200]}"
        if not isinstance(value, dict):
            return "{}", f"not an object. It began: {text[:200]}"
        return text, ""

    def text(self, *, keeps_tools: bool) -> str:
        """Return the block's wire text, or "" when it must not be sent back."""
        match self.type:
            case "text":
                cited = {"citations": self.citations} if self.citations else {}
                block = wire.encode({"type": "text", "text": self.grown} | cited)
                return block if self.grown else ""
            case "thinking" if self.is_closed and self.signature:
                signed = {"thinking": self.grown, "signature": self.signature}
                return wire.encode({"type": "thinking"} | signed)
            case "tool_use" if not keeps_tools:
                return ""
            case _ if self.is_closed and self.is_call:
                head = wire.encode(self.keep_call_fields())
                return _checked_text(head[:-1] + ',"input":' + self.input()[0] + "}")
            case name if self.is_closed and (name in _TAKEN_BACK or blocks.is_server_result(name)):
                return _checked_text(wire.encode(self.start))
            case _:
                return ""

    def keep_call_fields(self) -> dict[str, Any]:
        """Return the fields of a call, besides its input, that are sent back."""
        return {key: self.start[key] for key in _CALL_FIELDS if self.start.get(key)}

    @property
    def compaction(self) -> str:
        """The wire text of a compaction block as it must be sent back; "" for any other block."""
        if self.type != "compaction" or not self.is_closed:
            return ""
        signed = {"signature": self.signature} if self.signature else {}
        kept = {key: self.start[key] for key in _COMPACTION_FIELDS if self.start.get(key)}
        return wire.encode({"type": "compaction", "content": self.grown or None} | kept | signed)


def start_block(start: Any) -> BlockInProgress:
    """Start a block; raises StreamError for a tool call that could never be answered."""
    if not isinstance(start, dict) or not isinstance(start.get("type"), str):
        raise StreamError("a block is an object with a type")
    block = BlockInProgress(dict(demand_shallow(start)))
    if block.type in ("text", "thinking", "compaction"):
        name = "content" if block.type == "compaction" else block.type
        block.parts.append(wire.clean(start.get(name) or ""))
        block.signature = wire.clean(start.get("signature") or "")
        block.citations = _citations(start.get("citations") or [])
    elif block.is_call and (
        wrong := blocks.find_flaw("assistant", [block.keep_call_fields() | {"input": {}}])
    ):
        raise StreamError(wrong[2])
    return block


def demand_shallow(value: Any) -> Any:
    """Return the value unchanged; raises StreamError when it is nested too deeply."""
    level = [value]
    for _ in range(MOST_DEPTH):
        level = [
            child
            for item in level
            for child in (
                item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
            )
        ]
        if not level:
            return value
    raise StreamError(f"nested more than {MOST_DEPTH} deep")


def _citations(values: Any) -> list[dict[str, Any]]:
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise StreamError("a citation is an object")
    found: list[dict[str, Any]] = demand_shallow(values)
    return [{key: one[key] for key in one if key not in _NOT_TAKEN_BACK} for one in found]


def _checked_text(text: str) -> str:
    return "" if blocks.find_flaw("assistant", [wire.decode(text)]) else text
