"""Where each block of a request came from, and where each original went.

The fold of a path, with origins: each block in view knows its original and the step that
last wrote it, and each original that is no longer in view knows the step that removed it. So every
original is in exactly one state, and what was sent is listed once, in order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, assert_never

from conversations.context.steps.kinds import KINDS, Fate, TransformationKind
from conversations.context.view import edits
from conversations.context.view.block_originals import Original, Slot, match_originals
from conversations.context.view.edits import Edit, SpliceBlocks, SpliceMessages
from conversations.context.view.view import THINKING, Block, Kind, Message, View

#: How a block in view relates to its original. `cleared`: sent, then removed by the API.
State = Literal["verbatim", "shortened", "changed", "restored", "put in", "cleared"]


@dataclass(frozen=True, slots=True)
class Step:
    """A transformation on the path that has an effect: applied, or expected of the API."""

    seq: int
    kind: TransformationKind
    edits: tuple[Edit, ...] = ()
    #: The calls whose results the API clears from here on; None for other transformations.
    cleared: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """One block in view: block `at` of a message, last written by `step` (0: none)."""

    seq: int
    kind: Kind
    at: int
    block: Block
    original: Original | None
    step: int
    state: State


@dataclass(frozen=True, slots=True)
class Gone:
    """An original that is not in view, removed by `step`."""

    original: Original
    step: int
    fate: Fate


@dataclass(frozen=True, slots=True)
class Provenance:
    """The view, its blocks in order, and the originals that are not in it, in order."""

    view: View
    sent: tuple[Sent, ...]
    gone: tuple[Gone, ...]
    #: Number of messages on the path.
    messages: int


def trace_blocks(entries: Iterable[Message | Step]) -> Provenance:
    """Fold the entries of a path and track the origin of each block; raises EditError."""
    fold = _Fold()
    for entry in entries:
        if isinstance(entry, Message):
            fold.append(entry)
        elif entry.cleared is not None:
            fold.view = fold.view.with_cleared(entry.cleared)
        else:
            fold.view = edits.apply(fold.view, entry.kind, entry.edits)
            fold.apply(entry)
    gone = tuple(fold.gone[key] for key in sorted(fold.gone))
    return Provenance(fold.view, tuple(fold.sent()), gone, len(fold.stored))


@dataclass(slots=True)
class _Shown:
    """A message in view."""

    seq: int
    kind: Kind
    slots: list[Slot]
    thinks: bool


@dataclass(slots=True)
class _Fold:
    """The fold so far; `shown` has the messages of `view` by index."""

    view: View = field(default_factory=View)
    shown: list[_Shown] = field(default_factory=list)
    stored: dict[int, tuple[Original, ...]] = field(default_factory=dict)
    gone: dict[tuple[int, int], Gone] = field(default_factory=dict)

    def append(self, message: Message) -> None:
        seq, kind = message.seq, message.kind
        stored = tuple(Original(seq, at, kind, block) for at, block in enumerate(message.blocks))
        self.view = self.view.append(message)
        self.stored[seq] = stored
        slots = [Slot(original.block, original) for original in stored]
        self.shown.append(_Shown(seq, kind, slots, message.has_thinking))

    def apply(self, step: Step) -> None:
        """Repeat what `edits.apply` did, which has checked that the edits fit."""
        behind = len(self.shown)
        for edit in step.edits:
            match edit:
                case SpliceBlocks():
                    behind = min(behind, self._splice_blocks(step, edit))
                case SpliceMessages():
                    behind = min(behind, self._splice_messages(step, edit))
                case _:
                    assert_never(edit)
        for shown in self.shown[behind:]:
            if shown.thinks:
                self._drop_thinking(step, shown)

    def _splice_blocks(self, step: Step, edit: SpliceBlocks) -> int:
        at = bisect_left(self.shown, edit.seq, key=_seq)
        shown = self.shown[at]
        end = edit.at + edit.drop
        dropped, tail = shown.slots[edit.at : end], shown.slots[end:]
        put = self._put(step, edit.seq, edit.blocks, dropped)
        kept = [slot for slot in tail if slot.block.type not in THINKING]
        shown.slots = [*shown.slots[: edit.at], *put, *kept]
        shown.thinks = _thinks(shown.kind, shown.slots)
        self._settle(step, dropped, put, KINDS[step.kind].fate)
        self._settle(step, tail, kept, "thinking")
        return at + 1

    def _splice_messages(self, step: Step, edit: SpliceMessages) -> int:
        at = bisect_left(self.shown, edit.first, key=_seq)
        end = bisect_left(self.shown, edit.last + 1, key=_seq)
        old = {shown.seq: shown.slots for shown in self.shown[at:end]}
        new: list[_Shown] = []
        for seq, kind, content in edit.messages:
            texts = [block.text for block in Message.parse(seq, kind, content).blocks]
            put = self._put(step, seq, texts, old.get(seq, []))
            new.append(_Shown(seq, kind, put, _thinks(kind, put)))
        self.shown[at:end] = new
        dropped = [slot for slots in old.values() for slot in slots]
        self._settle(step, dropped, [s for each in new for s in each.slots], KINDS[step.kind].fate)
        return at

    def _drop_thinking(self, step: Step, shown: _Shown) -> None:
        kept = [slot for slot in shown.slots if slot.block.type not in THINKING]
        self._settle(step, shown.slots, kept, "thinking")
        shown.slots, shown.thinks = kept, False

    def _put(
        self, step: Step, seq: int, texts: Sequence[str], dropped: Sequence[Slot]
    ) -> list[Slot]:
        return match_originals(texts, dropped, self._absent(seq, dropped), step.seq, step.kind)

    def _absent(self, seq: int, dropped: Sequence[Slot]) -> list[Original]:
        """Return the originals of a message that could be restored here."""
        freed = {slot.original.key for slot in dropped if slot.original is not None}
        stored = self.stored.get(seq, ())
        return [one for one in stored if one.key in self.gone or one.key in freed]

    def _settle(
        self, step: Step, before: Iterable[Slot], after: Iterable[Slot], fate: Fate
    ) -> None:
        """Record which originals were removed and which were restored."""
        there = {slot.original.key for slot in after if slot.original is not None}
        for slot in before:
            if slot.original is not None and slot.original.key not in there:
                self.gone[slot.original.key] = Gone(slot.original, step.seq, fate)
        for key in there:
            self.gone.pop(key, None)

    def sent(self) -> Iterable[Sent]:
        cleared = frozenset(self.view.cleared)
        for message, shown in zip(self.view.messages, self.shown, strict=True):
            for at, (block, slot) in enumerate(zip(message.blocks, shown.slots, strict=True)):
                state = _find_state(block, slot, cleared)
                yield Sent(message.seq, message.kind, at, block, slot.original, slot.step, state)


def _seq(shown: _Shown) -> int:
    return shown.seq


def _thinks(kind: Kind, slots: Iterable[Slot]) -> bool:
    return kind == "answer" and any(slot.block.type in THINKING for slot in slots)


def _find_state(block: Block, slot: Slot, cleared: frozenset[str]) -> State:
    if slot.original is None:
        return "put in"
    # Blocks are read only if one of them can be cleared.
    if cleared and block.type == "tool_result" and block.id in cleared:
        return "cleared"
    before = slot.original.block.text
    if block.text != before:
        return "shortened" if len(block.text) < len(before) else "changed"
    return "restored" if slot.is_back else "verbatim"
