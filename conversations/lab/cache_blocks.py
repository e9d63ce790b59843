"""A request as the sequence of blocks that cache and bill work on: tools, system, messages.

Each position has a key that identifies everything up to it, and the tokens up to it. The messages'
part is folded on the view's trail, so a call costs what was appended since the last one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from conversations.context.view import cache_breakpoints, wire
from conversations.context.view.cache_breakpoints import Lifetime
from conversations.context.view.envelope import Envelope
from conversations.context.view.view import Message, View
from conversations.lab.simulated_tokenizer import Tokenizer

#: A key, the tokens up to its position, and the lifetime of a breakpoint on it.
Position = tuple[bytes, int, Lifetime | None]


@dataclass(slots=True)
class Positions:
    """Positions in order; `key` and `tokens` are those of the last one."""

    key: bytes = b""
    tokens: int = 0
    found: list[Position] = field(default_factory=list)
    #: The position at which each message begins.
    starts: list[int] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    has_image: bool = False

    def add(self, text: str, tokens: int, mark: Lifetime | None) -> None:
        self.key = blake2b(self.key + text.encode(), digest_size=16).digest()
        self.tokens += tokens
        if mark:
            self.marks.append(len(self.found))
        self.found.append((self.key, self.tokens, mark))


@dataclass(frozen=True, slots=True)
class RequestBlocks:
    """The head (tools and system prompt) and the messages after it, as two lists of positions.

    `again` is the position in the body with a breakpoint because the previous request ended there.
    """

    head: Positions
    body: Positions
    automatic: Lifetime | None
    again: int | None = None

    def __len__(self) -> int:
        return len(self.head.found) + len(self.body.found)

    @property
    def tokens(self) -> int:
        return self.head.tokens + self.body.tokens

    def key(self, at: int) -> bytes:
        """Identify everything up to a position; any image changes the keys of all messages."""
        behind = at - len(self.head.found)
        if behind < 0:
            return self.head.found[at][0]
        image = b"i" if self.body.has_image else b"-"
        return self.head.key + image + self.body.found[behind][0]

    def size(self, at: int) -> int:
        behind = at - len(self.head.found)
        if behind < 0:
            return self.head.found[at][1]
        return self.head.tokens + self.body.found[behind][1]

    def marks(self) -> dict[int, Lifetime]:
        """Return the breakpoints, including the automatic one on the last position."""
        first = len(self.head.found)
        marked = {at: _find_lifetime(self.head, at) for at in self.head.marks}
        marked |= {first + at: _find_lifetime(self.body, at) for at in self.body.marks}
        if self.again is not None:
            marked[first + self.again] = self.automatic or "5m"
        if self.automatic and len(self):
            marked.setdefault(len(self) - 1, self.automatic)
        return marked


def _find_lifetime(places: Positions, at: int) -> Lifetime:
    return places.found[at][2] or "5m"


class BlockReader:
    """Builds the blocks of requests with one tokenizer, and caches them."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._heads: dict[str, tuple[Positions, Lifetime | None]] = {}
        self._known: dict[tuple[str, str], list[tuple[str, int, Lifetime | None, bool]]] = {}

    def line(self, envelope: Envelope, view: View) -> RequestBlocks:
        head, automatic = self._head(envelope)
        body = view.fold_cached("lab line", Positions, self._read)
        place = cache_breakpoints.choose_breakpoint(view.messages)
        again = None if place is None else body.starts[place.message] + place.block
        return RequestBlocks(head, body, automatic, again)

    def answer_tokens(self, message: Message) -> int:
        return sum(tokens for _, tokens, _, _ in self._blocks(message))

    def _head(self, envelope: Envelope) -> tuple[Positions, Lifetime | None]:
        if envelope.text not in self._heads:
            parameters = dict(envelope.parameters)
            self._heads[envelope.text] = self._lay_head(parameters), _read_breakpoint(parameters)
        return self._heads[envelope.text]

    def _lay_head(self, parameters: dict[str, Any]) -> Positions:
        tools = parameters.get("tools", ())
        extra = self._tokenizer.request + (self._tokenizer.tools if tools else 0)
        choices = [parameters.get(name) for name in ("model", "thinking", "tool_choice")]
        places = Positions(wire.encode(choices).encode(), extra)
        for tool in tools:
            places.add(
                "tools" + _encode_unmarked(tool), self._tokenizer.tool(tool), _read_breakpoint(tool)
            )
        system = parameters.get("system", "")
        texts = [{"type": "text", "text": system}] if isinstance(system, str) else system
        for block in texts:
            if block["text"]:
                places.add(
                    "system" + _encode_unmarked(block),
                    self._tokenizer.block(block),
                    _read_breakpoint(block),
                )
        return places

    def _read(self, places: Positions, message: Message) -> None:
        places.starts.append(len(places.found))
        for text, tokens, mark, is_image in self._blocks(message):
            places.add(text, tokens, mark)
            places.has_image = places.has_image or is_image

    def _blocks(self, message: Message) -> list[tuple[str, int, Lifetime | None, bool]]:
        name = (message.kind, message.content)
        if name not in self._known:
            frame, found = self._tokenizer.message, []
            for block in message.blocks:
                value = block.value
                count = frame + self._tokenizer.block(value)
                frame = 0
                text = message.role + (
                    _encode_unmarked(value) if _read_breakpoint(value) else block.text
                )
                found.append((text, count, _read_breakpoint(value), _has_image([value])))
            self._known[name] = found
        return self._known[name]


def _encode_unmarked(value: dict[str, Any]) -> str:
    return wire.encode({key: item for key, item in value.items() if key != "cache_control"})


def _read_breakpoint(value: dict[str, Any]) -> Lifetime | None:
    control = value.get("cache_control")
    if not isinstance(control, dict):
        return None
    return "1h" if control.get("ttl") == "1h" else "5m"


def _has_image(blocks: Iterable[Any]) -> bool:
    return any(
        block["type"] == "image"
        or (
            block["type"] == "tool_result"
            and isinstance(block.get("content"), list)
            and _has_image(block["content"])
        )
        for block in blocks
    )
