"""The model's input: messages in order, as wire text.

A `View` is a value; it grows by `append` and changes only through `edits.apply`. Its body is joined
from stored text, so a view costs nothing to keep and little to send. Blocks are parsed only when a
step reads a message, and the parsed values are cached.

Views derived from one another by `append` share a `Trail`: the messages, and the states that were
folded from them in order. So a step that finds nothing to do reads only what was appended
since it last ran, however long the history is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeVar

from conversations.context.errors import WireError
from conversations.context.tokens.estimate import FRAME, estimate_block
from conversations.context.view import cache_breakpoints, wire
from conversations.context.view.cache_breakpoints import Lifetime
from conversations.context.view.message_shape import Shape, read_shape

S = TypeVar("S")
Kind = Literal["prompt", "answer", "results"]
_HEAD = {
    "prompt": '{"role":"user","content":',
    "results": '{"role":"user","content":',
    "answer": '{"role":"assistant","content":',
}
THINKING = ("thinking", "redacted_thinking")


@dataclass(frozen=True)
class Block:
    """One content block: its wire text, and what the engine needs to know of it.

    `by` names the kind of transformation that wrote it; "" for an original block. `id` is the id of
    a tool_use, or the tool_use_id of a tool_result.
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
        return estimate_block(self.value)


@dataclass(frozen=True)
class Message:
    """One message: `content` is the wire text of its array of blocks.

    `tokens` is the estimate for the whole message; `by` has for each block the kind of
    transformation that wrote it, empty if all are original.
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
        """Build a message from stored text, with its estimate."""
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
        """Bytes on the wire, including the comma that follows."""
        if self.is_empty:
            return 0
        text = self.content
        length = len(text) if text.isascii() else len(text.encode())
        return len(_HEAD[self.kind]) + length + 2

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        slices = wire.split(self.content)
        return tuple(map(Block, slices, self.by or ("",) * len(slices)))

    @cached_property
    def shape(self) -> Shape:
        return read_shape(self.role, self.content)

    @cached_property
    def has_thinking(self) -> bool:
        # This quick check has false positives only (a tool input may contain such an object).
        if self.kind != "answer" or 'thinking"' not in self.content:
            return False
        try:
            return any(block.type in THINKING for block in self.blocks)
        except WireError:
            # Malformed: it breaks a rule and is repaired before it is sent.
            return False


class Trail:
    """Messages in order, growing at the end only, and states folded from them.

    `folds` has for each key the number of messages read and the state after them.
    """

    __slots__ = ("folds", "messages")

    def __init__(self, messages: list[Message] | None = None) -> None:
        self.messages: list[Message] = messages or []
        self.folds: dict[Hashable, tuple[int, Any]] = {}


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """The first `length` messages of a trail, with running totals.

    `tokens` and `size` are sums over the messages; `edits` counts the transformations that changed
    it. `cleared` are the ids of the calls whose results the API was last expected to clear, oldest
    first.
    """

    trail: Trail = field(default_factory=Trail, repr=False)
    length: int = 0
    tokens: int = 0
    size: int = 2
    edits: int = 0
    cleared: tuple[str, ...] = ()

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(self.trail.messages[: self.length])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, View):
            return NotImplemented
        return self.messages == other.messages and self._facts == other._facts

    @property
    def _facts(self) -> tuple[object, ...]:
        return self.tokens, self.size, self.edits, self.cleared

    __hash__ = None  # type: ignore[assignment]

    def append(self, message: Message) -> View:
        trail = self.trail
        following = trail.messages[self.length : self.length + 1]
        if following and following != [message]:
            # Another view has appended to this trail: copy it, since the two differ from now on.
            trail, following = Trail(trail.messages[: self.length]), []
        if not following:
            trail.messages.append(message)
        return View(
            trail,
            self.length + 1,
            self.tokens + message.tokens,
            self.size + message.size,
            self.edits,
            self.cleared,
        )

    def with_cleared(self, cleared: tuple[str, ...]) -> View:
        """Return the same view, with the calls whose results the API is expected to clear."""
        return replace(self, cleared=cleared)

    def head(self, count: int) -> View:
        """Return a view of the first `count` messages."""
        messages = self.trail.messages[:count]
        tokens = sum(message.tokens for message in messages)
        size = 2 + sum(message.size for message in messages)
        return replace(self, length=count, tokens=tokens, size=size)

    @property
    def body(self) -> str:
        """The `messages` array as sent with the cache's usual lifetime."""
        return self.join("5m")

    def join(self, lifetime: Lifetime) -> str:
        """Return the `messages` array as sent; messages left without blocks are not sent."""
        messages = self.messages
        marked = cache_breakpoints.choose_breakpoint(messages, lifetime)
        return wire.join(cache_breakpoints.render_texts(messages, marked))

    def fold_cached(
        self, key: Hashable, start: Callable[[], S], read: Callable[[S, Message], None]
    ) -> S:
        """Return the state after reading every message; each is read only once per key."""
        trail = self.trail
        # Removed while reading: a state that failed halfway must not be continued.
        done, state = trail.folds.pop(key, (0, None))
        if state is None or done > self.length:
            done, state = 0, start()
        for message in trail.messages[done : self.length]:
            read(state, message)
        trail.folds[key] = (self.length, state)
        return state  # type: ignore[no-any-return]

    def store_fold(self, key: Hashable, state: object) -> None:
        """Store the state that reading every message would give."""
        self.trail.folds[key] = (self.length, state)
