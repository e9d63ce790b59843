"""Measures how much of a stream was sent: a cut stream is billed for that.

The meter stores the bytes and parses them only if the stream did not end normally. An event counts
once it was sent completely, because clients cannot use a part of one. The output of a cut stream is
what the model wrote into its blocks: text, thinking, names and inputs of calls. Signatures, results
and citations are not counted; thinking that is not displayed is not sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from agentweb.emulator import json_codec
from agentweb.emulator.asgi import Message
from agentweb.emulator.message_metadata import is_search
from agentweb.emulator.model_catalogue import Tokenizer
from agentweb.emulator.tokens import CALL_TOKENS, count_text

_WRITTEN = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
}


@dataclass(frozen=True, slots=True)
class Carried:
    """How much of a stream was sent."""

    #: `message_start` was sent, and with it the input usage.
    began: bool
    #: The final usage was sent.
    ended: bool
    output: int
    #: Web searches whose results were sent.
    searches: int
    #: Blocks that have begun.
    blocks: int


@dataclass(slots=True)
class StreamMeter:
    is_closed: bool = False
    _parts: list[bytes] = field(default_factory=list)

    def take(self, message: Message) -> None:
        """Record what a message sends."""
        self._parts.append(message.get("body", b""))
        self.is_closed = not message.get("more_body", False)

    def read(self, tokenizer: Tokenizer) -> Carried:
        began = ended = False
        blocks: dict[int, list[str]] = {}
        calls: set[int] = set()
        searches = 0
        for event in _events(b"".join(self._parts)):
            match event:
                case {"type": "message_start", "message": {"stop_reason": reason}}:
                    # A message may be complete in its start event.
                    began, ended = True, reason is not None
                case {"type": "content_block_start", "index": index, "content_block": block}:
                    if block["type"].endswith("tool_use"):
                        calls.add(index)
                    searches += is_search(block)
                    blocks[index] = [_opening(block)]
                case {"type": "content_block_delta", "index": index, "delta": delta}:
                    name = _WRITTEN.get(delta["type"], "")
                    blocks.setdefault(index, []).append(delta.get(name, ""))
                case {"type": "message_delta", "delta": {"stop_reason": str()}}:
                    ended = True
        output = sum(count_text("".join(parts), tokenizer) for parts in blocks.values())
        return Carried(began, ended, output + CALL_TOKENS * len(calls), searches, len(blocks))


def _opening(block: json_codec.Object) -> str:
    if block["type"].endswith("tool_use"):
        return str(block["name"])
    return str(block.get(block["type"], "")) if block["type"] in {"text", "thinking"} else ""


def _events(data: bytes) -> Iterator[json_codec.Object]:
    """Yield the complete events, up to one that is not JSON: clients stop reading there."""
    *complete, _ = data.split(b"\n\n")
    for lines in complete:
        try:
            yield json_codec.decode(lines.partition(b"data: ")[2])
        except json_codec.NotJson:
            return
