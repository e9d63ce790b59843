"""Where a request's messages carry a cache breakpoint of their own.

The API caches up to a breakpoint, and looks back at most twenty blocks from one for what an earlier
request cached. The automatic breakpoint at the end of each request is close enough to the previous
one, unless an answer with many calls and their results lies between: then the whole prefix would be
missed and paid again. Only then the block that ended the previous request gets a breakpoint, too.
Stored text has none: it is inserted when the text is joined, determined by the messages alone, so
that joining them again gives the same bytes. With the automatic one and the one at the end of tools
and system prompt, a request has three of the allowed four, all with the lifetime in the envelope.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from conversations.context.view import wire

if TYPE_CHECKING:
    from conversations.context.view.view import Message

Lifetime = Literal["5m", "1h"]
#: Seconds for which a prefix stays in the cache after its last use.
SECONDS: dict[Lifetime, int] = {"5m": 300, "1h": 3_600}
#: A breakpoint as a parameter, by lifetime.
CONTROLS: dict[Lifetime, dict[str, str]] = {
    "5m": {"type": "ephemeral"},
    "1h": {"type": "ephemeral", "ttl": "1h"},
}
#: The same as text inserted into a block.
MARKS = {name: f',"cache_control":{wire.encode(value)}' for name, value in CONTROLS.items()}
#: Blocks that a look-back surely covers: the API's twenty without the first and the last.
REACH = 18
_MARKABLE = frozenset({"text", "image", "document", "tool_result"})


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """Block `block` of the message at index `message`."""

    message: int
    block: int
    lifetime: Lifetime = "5m"


def add_breakpoint(block: dict[str, Any], lifetime: Lifetime = "5m") -> dict[str, Any]:
    """Return a block or a tool with a breakpoint on it."""
    return block | {"cache_control": CONTROLS[lifetime]}


def find_settled(messages: Sequence[Message]) -> int:
    """Return the index of the message that ended the previous request; -1 if there was none.

    No breakpoint is ever put before it, in these messages or in any that continue them.
    """
    at = len(messages) - 1
    while at >= 0 and messages[at].kind != "answer":
        at -= 1
    while at >= 0 and (messages[at].kind == "answer" or messages[at].is_empty):
        at -= 1
    return at


def choose_breakpoint(messages: Sequence[Message], lifetime: Lifetime = "5m") -> Breakpoint | None:
    """Return the block that needs a breakpoint; None if the look-back reaches far enough."""
    at = find_settled(messages)
    if at < 0 or not _is_far(messages, at + 1):
        return None
    slices = wire.split(messages[at].content)
    for block in reversed(range(len(slices))):
        value = wire.decode(slices[block])
        if value.get("type") in _MARKABLE and "cache_control" not in value:
            return Breakpoint(at, block, lifetime)
    return None


def render_texts(
    messages: Sequence[Message], marked: Breakpoint | None, start: int = 0
) -> Iterator[str]:
    """Yield the messages from index `start` on as they are sent; empty ones are left out."""
    for at in range(start, len(messages)):
        message = messages[at]
        if marked is not None and at == marked.message:
            yield _render_marked(message, marked)
        elif not message.is_empty:
            yield message.text


def _is_far(messages: Sequence[Message], start: int) -> bool:
    """Return whether more blocks follow from index `start` on than a look-back covers."""
    added = 0
    for at in range(start, len(messages)):
        added += len(wire.split(messages[at].content))
        if added > REACH:
            return True
    return False


def _render_marked(message: Message, place: Breakpoint) -> str:
    slices = wire.split(message.content)
    slices[place.block] = slices[place.block][:-1] + MARKS[place.lifetime] + "}"
    return replace(message, content=wire.join(slices)).text
