"""What a person pinned, found in the log: the messages to restore for it, and their tokens.

A pin is the id of a tool call or the number of a message. Pinned originals are restored in full: in
a message that is in view only the pinned block, of dropped messages the whole unit, because a call
and its results are restored together or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from conversations.context.steps.kinds import OURS
from conversations.context.view.rules import find_cuts
from conversations.context.view.view import Block, Message, View

Pin = str | int
#: Ids are stored in columns of this length, numbers in 64 bits (18 digits).
_LONGEST_ID, _LONGEST_NUMBER = 200, 18


def find_pins(log: Sequence[Message], ids: Sequence[str]) -> list[Pin | None]:
    """Return the pins for ids as `recall` takes them; None for an id that the log does not have."""
    numbers = {message.seq for message in log}
    results = _find_results(log, {*ids})
    found: list[Pin | None] = []
    for name in ids:
        number = name.removeprefix("msg_")
        if number.isdecimal() and len(number) <= _LONGEST_NUMBER:
            found.append(int(number) if int(number) in numbers else None)
        else:
            found.append(name if 0 < len(name) <= _LONGEST_ID and name in results else None)
    return found


def estimate_pins(log: Sequence[Message], pins: Iterable[Pin]) -> int:
    """Estimate the tokens of the pinned originals."""
    wanted = frozenset(pins)
    total = sum(message.tokens for message in log if message.seq in wanted)
    found = _find_results(log, {pin for pin in wanted if isinstance(pin, str)})
    return total + sum(
        block.tokens for message, block in found.values() if message.seq not in wanted
    )


def find_originals(view: View, log: Sequence[Message], pins: Iterable[Pin]) -> list[Message]:
    """Return the messages that must be restored for these pins, in the order of the log."""
    wanted = frozenset(pins)
    by_id = _find_results(log, {pin for pin in wanted if isinstance(pin, str)})
    whole = {message.seq for message in log if message.seq in wanted}
    parts = {message.seq for message, _ in by_id.values()} - whole
    present = {message.seq: message for message in view.messages}
    found = {message.seq: message for message in log if message.seq in whole & present.keys()}
    for seq in parts & present.keys():
        found[seq] = _restore_blocks(
            present[seq], {name: block for name, (_, block) in by_id.items()}
        )
    found |= _find_units(log, (whole | parts) - present.keys(), present.keys())
    return [found[seq] for seq in sorted(found)]


def _find_results(log: Sequence[Message], ids: set[str]) -> dict[str, tuple[Message, Block]]:
    """Find tool results by the ids of their calls."""
    found: dict[str, tuple[Message, Block]] = {}
    for message in log:
        if ids and message.kind == "results":
            for result in message.shape.results:
                if result.id in ids:
                    found[result.id] = message, message.blocks[result.at]
    return found


def _restore_blocks(message: Message, blocks: dict[str, Block]) -> Message:
    """Return the message in view with these blocks restored, without the engine's own blocks."""
    own = (block for block in message.blocks if block.by not in OURS)
    return Message.of(
        message.seq,
        message.kind,
        tuple(
            blocks.get(block.id, block) if block.type == "tool_result" else block for block in own
        ),
    )


def _find_units(
    log: Sequence[Message], gone: set[int], present: Iterable[int]
) -> dict[int, Message]:
    """Return the whole units of messages that are not in view."""
    if not gone:
        return {}
    there = set(present)
    every = View()
    for message in log:
        every = every.append(message)
    found: dict[int, Message] = {}
    positions = find_cuts(every)
    for start, end in zip(positions, [*positions[1:], len(log)], strict=True):
        unit = log[start:end]
        if any(message.seq in gone for message in unit):
            found |= {message.seq: message for message in unit if message.seq not in there}
    return found
