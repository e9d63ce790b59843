"""Match the blocks in view with the originals they replace.

A block inserted by a step replaces an original if it has its text (it was restored), its id (a
shortened result), or its position and type (a shortened large block). Any other inserted block is
the engine's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from conversations.context.view.view import Block, Kind


@dataclass(frozen=True, slots=True)
class Original:
    """Block `at` of message `seq` as it was stored."""

    seq: int
    at: int
    kind: Kind
    block: Block

    @property
    def key(self) -> tuple[int, int]:
        return self.seq, self.at


@dataclass(frozen=True, slots=True)
class Slot:
    """A block in view, its original, and the step that last wrote it."""

    block: Block
    original: Original | None
    step: int = 0
    is_back: bool = False


def match_originals(
    texts: Sequence[str],
    dropped: Sequence[Slot],
    absent: Sequence[Original],
    step: int,
    by: str,
) -> list[Slot]:
    """Match each text that `step` inserted in place of `dropped` with its original.

    `absent` are the message's originals that are not in view or were dropped by this step.
    """
    left, originals = list(dropped), list(absent)
    found: list[Slot | None] = [_take(left, text) for text in texts]
    kept = [slot.original for slot in found if slot is not None]
    originals = [one for one in originals if not any(one is other for other in kept)]
    for at, text in enumerate(texts):
        if found[at] is None and (original := _take_original(originals, text)) is not None:
            found[at] = Slot(original.block, original, step, is_back=True)
            left = [slot for slot in left if slot.original is not original]
    return [
        slot if slot is not None else _match_rewritten(step, Block(text, by), left)
        for slot, text in zip(found, texts, strict=True)
    ]


def _take(slots: list[Slot], text: str) -> Slot | None:
    """Remove and return the first block with this text: it did not change."""
    for at, slot in enumerate(slots):
        if slot.block.text == text:
            return slots.pop(at)
    return None


def _take_original(originals: list[Original], text: str) -> Original | None:
    """Remove and return the first original with this text."""
    for at, original in enumerate(originals):
        if original.block.text == text:
            return originals.pop(at)
    return None


def _match_rewritten(step: int, block: Block, left: list[Slot]) -> Slot:
    """Pair a new text with the block it was made from, if there is one."""
    for at, slot in enumerate(left):
        if slot.original is not None and (slot.block.type, slot.block.id) == (block.type, block.id):
            return replace(left.pop(at), block=block, step=step, is_back=False)
    return Slot(block, None, step)
