"""What a context consists of, in estimated tokens: the parts of the meter.

Each message is measured once, however many views have it; the parts of a view add up to its tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from conversations.context.steps.kinds import OURS
from conversations.context.view.blocks import is_server_result
from conversations.context.view.view import THINKING, Block, Kind, Message

Part = Literal["system", "summary", "prompts", "answers", "thinking", "results", "attachments"]
#: In their order on the meter.
PARTS: tuple[Part, ...] = (
    "system", "summary", "prompts", "answers", "thinking", "results", "attachments",
)  # fmt: skip
_ATTACHED = frozenset({"image", "document", "search_result", "container_upload"})


def find_part(kind: Kind, block: Block) -> Part:
    """Return the part that a block in a message of this kind belongs to."""
    if block.by in OURS or block.type == "compaction":
        return "summary"
    if block.type in THINKING:
        return "thinking"
    if block.type == "tool_result" or is_server_result(block.type):
        return "results"
    if block.type in _ATTACHED:
        return "attachments"
    return "answers" if kind == "answer" else "prompts"


class PartCounter:
    """Counts the parts of messages and remembers the counts."""

    def __init__(self) -> None:
        # By identity: an unchanged message is the same object in every view.
        self._known: dict[int, tuple[Message, Counter[Part]]] = {}

    def message(self, message: Message) -> Counter[Part]:
        """Return the tokens of each part of one message; its frame counts with its first block."""
        known = self._known.get(id(message))
        if known is not None:
            return known[1]
        parts: Counter[Part] = Counter()
        frame: Part = "answers" if message.kind == "answer" else "prompts"
        blocks = message.blocks
        for block in reversed(blocks):
            frame = find_part(message.kind, block)
            # For a message of one block, the frame's sum below includes the block.
            parts[frame] += block.tokens if len(blocks) > 1 else 0
        parts[frame] += message.tokens - parts.total()
        self._known[id(message)] = message, parts
        return parts

    def messages(self, messages: Iterable[Message]) -> Counter[Part]:
        """Return the parts of the messages together."""
        found: Counter[Part] = Counter()
        for message in messages:
            found.update(self.message(message))
        return found
