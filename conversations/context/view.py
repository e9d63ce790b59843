"""What the model sees: messages in order, as wire text.

A `View` is a value; it grows by `append` and changes only through `edits.apply`. Its body is joined
from stored text, so a view costs nothing to keep and little to send. Blocks are parsed only when a
step has to look inside a message, and remembered.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from conversations.context import wire
from conversations.context.errors import WireError
from conversations.context.estimate import FRAME, block_tokens

Kind = Literal["prompt", "answer", "results"]
_HEAD = {
    "prompt": '{"role":"user","content":',
    "results": '{"role":"user","content":',
    "answer": '{"role":"assistant","content":',
}
THINKING = ("thinking", "redacted_thinking")


@dataclass(frozen=True)
class Block:
    """One content block: its wire text, and what the engine asks of it.

    `by` names the kind of transformation that wrote it; "" is what was originally stored.
    `id` is the id of a tool_use, or the tool_use_id of a tool_result.
    """

    text: str
    by: str = ""

    @cached_property
    def value(self) -> dict[str, Any]:
        value = wire.decode(self.text)
        if not isinstance(value, dict) or not isinstance(value.get("type"), str):
            raise WireError("a content block is an object with a type")
        return value

    @property
    def type(self) -> str:
        return str(self.value["type"])

    @property
    def id(self) -> str:
        return str(self.value.get("tool_use_id" if self.type == "tool_result" else "id", ""))

    @property
    def is_error(self) -> bool:
        return self.value.get("is_error") is True

    @cached_property
    def tokens(self) -> int:
        return block_tokens(self.value)


@dataclass(frozen=True)
class Message:
    """One message: `content` is the wire text of its array of blocks.

    `tokens` is the estimate for the whole message; `by` says for each block which kind of
    transformation wrote it, empty while all of them are original.
    """

    seq: int
    kind: Kind
    content: str
    tokens: int
    by: tuple[str, ...] = ()

    @classmethod
    def of(cls, seq: int, kind: Kind, blocks: tuple[Block, ...]) -> Message:
        by = tuple(block.by for block in blocks)
        return cls(
            seq,
            kind,
            wire.join(block.text for block in blocks),
            FRAME + sum(block.tokens for block in blocks),
            by if any(by) else (),
        )

    @classmethod
    def parse(cls, seq: int, kind: Kind, content: str) -> Message:
        """Make a message from stored text, estimating it."""
        return cls.of(seq, kind, tuple(Block(text) for text in wire.split(content)))

    @property
    def role(self) -> str:
        return "assistant" if self.kind == "answer" else "user"

    @property
    def text(self) -> str:
        return _HEAD[self.kind] + self.content + "}"

    @property
    def is_empty(self) -> bool:
        return self.content == "[]"

    @cached_property
    def size(self) -> int:
        """Bytes on the wire, the comma that follows included."""
        return 0 if self.is_empty else len(self.text.encode()) + 1

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        slices = wire.split(self.content)
        return tuple(map(Block, slices, self.by or ("",) * len(slices)))

    @cached_property
    def has_thinking(self) -> bool:
        # The quick look can be wrong only by saying yes (a tool input may hold such an object).
        if not any(f'"type":"{name}"' in self.content for name in THINKING):
            return False
        return any(block.type in THINKING for block in self.blocks)


@dataclass(frozen=True, slots=True)
class View:
    """The messages the model is given, with running totals.

    `tokens` and `size` are sums over the messages; `edits` counts the transformations applied, and
    `reduced` says that some original is no longer in view (so that `recall` is offered).
    """

    messages: tuple[Message, ...] = ()
    tokens: int = 0
    size: int = 2
    edits: int = 0
    reduced: bool = False

    def append(self, message: Message) -> View:
        return View(
            (*self.messages, message),
            self.tokens + message.tokens,
            self.size + message.size,
            self.edits,
            self.reduced,
        )

    @property
    def body(self) -> str:
        """The `messages` array as sent; messages left without blocks are not sent."""
        return wire.join(message.text for message in self.messages if not message.is_empty)
