"""Which messages a summary replaces, and where in the first message its text goes.

The zone lies between the first message and the protected tail and ends at a cut, so that no call is
separated from its result, whatever the zone's size. What must stay in view (the latest prompt,
results of verbatim tools) stays where it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from conversations.context.policy.policy import Policy
from conversations.context.steps.kinds import ASKS_MODEL, OURS
from conversations.context.steps.removable_units import build_drops, find_kept
from conversations.context.view.edits import Edit, SpliceBlocks
from conversations.context.view.rules import find_cuts
from conversations.context.view.view import Block, Message, View


@dataclass(frozen=True, slots=True)
class Zone:
    """`indexes` of the messages to replace; `ours` are the engine's blocks in the first message,
    from `at` on.

    `tail` are the messages after the first one that stay.
    """

    messages: tuple[Message, ...]
    indexes: tuple[int, ...]
    tail: tuple[Message, ...]
    first: Message
    at: int
    ours: tuple[Block, ...]

    @property
    def own(self) -> tuple[Block, ...]:
        """The first message's blocks that the engine did not write."""
        return tuple(block for block in self.first.blocks[: self.at] if block.by not in OURS)

    @property
    def written(self) -> list[str]:
        """The model's texts about earlier messages, with their lists."""
        return [str(block.value["text"]) for block in self.ours if block.by in ASKS_MODEL]

    @property
    def previous(self) -> str:
        """The text of the summary in view; "" if there is none."""
        return "\n\n".join(self.written)

    def edits(self, view: View, text: str) -> list[Edit]:
        """Return the edits that replace the zone and the engine's old blocks by one new block."""
        put = SpliceBlocks(self.first.seq, self.at, len(self.ours), (text,))
        return [put, *build_drops(view, self.indexes)]


def find_zone(view: View, policy: Policy) -> Zone | None:
    """Find the zone; None if there are fewer than two messages to replace."""
    last = view.length - policy.protected_tail_messages
    return find_zone_before(
        view, policy, max((at for at in find_cuts(view) if at <= last), default=0)
    )


def find_zone_before(view: View, policy: Policy, end: int, start: int = 1) -> Zone | None:
    """Return the zone that ends at a cut, without messages that must stay."""
    messages = view.messages
    stay = find_kept(view, find_cuts(view), policy)
    indexes = tuple(at for at in range(start, end) if at not in stay)
    replaced = tuple(messages[at] for at in indexes)
    if sum(not message.is_empty for message in replaced) < 2:
        return None
    first = messages[0]
    gone = set(indexes)
    tail = tuple(message for at, message in enumerate(messages) if at and at not in gone)
    count = sum(name in OURS for name in first.by)
    own = len(first.blocks) - count
    return Zone(replaced, indexes, tail, first, own, first.blocks[own:])
