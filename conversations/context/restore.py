"""Bring originals back into view: the one transformation that may let a view grow.

A person asks for it, so no threshold is involved. A message still in view gets its own blocks back,
whatever the engine wrote beside them stays; one that was dropped is put in at its number. An answer
and the results of its calls come together or not at all: `rules.check` decides. Thinking does not
come back, for its signature covers a prefix that is no more.
"""

from __future__ import annotations

from conversations.context import edits, rules
from conversations.context.edits import Edit, SpliceBlocks, SpliceMessages, Transformation, Trigger
from conversations.context.view import THINKING, Message, View
from conversations.context.zone import OURS


def restore(view: View, *originals: Message) -> Transformation | None:
    """Make the record of putting originals back; None when all are there, RuleError if illegal."""
    present = {message.seq: message for message in view.messages}
    changes: list[Edit] = []
    for original in originals:
        blocks = tuple(b.text for b in original.blocks if b.type not in THINKING)
        now = present.get(original.seq)
        if now is None:
            put = (original.seq, original.kind, f"[{','.join(blocks)}]")
            changes.append(SpliceMessages(original.seq, original.seq, (put,)))
            continue
        own = tuple(block.text for block in now.blocks if block.by not in OURS)
        if own != blocks:
            changes.append(SpliceBlocks(original.seq, 0, len(own), blocks))
    if not changes:
        return None
    count = len(changes)
    note = f"Brought back {count} original message{'s' if count > 1 else ''}"
    trigger = Trigger(count, 0, "counted")
    change = edits.transformation(view, "restore", trigger, changes, note)
    rules.check(change.made)
    return change
