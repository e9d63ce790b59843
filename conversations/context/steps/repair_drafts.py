"""A view as lists that can be changed freely, and the edits that turn the view into them.

A repair moves and removes blocks until the rules hold; the difference is recorded, in the two kinds
of edit there are. A message whose text cannot be split into blocks is replaced as a whole; of any
other one only the blocks between the first and the last that changed.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from conversations.context.errors import WireError
from conversations.context.view import wire
from conversations.context.view.edits import Edit, SpliceBlocks, SpliceMessages
from conversations.context.view.view import THINKING, Block, Kind, Message, View


@dataclass(slots=True)
class Draft:
    """A message of the view; `is_broken`: its text is no array of objects with a type."""

    seq: int
    kind: Kind
    blocks: list[Block]
    is_broken: bool = False

    @property
    def role(self) -> str:
        return "assistant" if self.kind == "answer" else "user"

    @property
    def is_prompt(self) -> bool:
        return self.kind == "prompt"


@dataclass(slots=True)
class Drafts:
    """The messages of a view as drafts, in order."""

    view: View
    rows: list[Draft] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rows = [_read_draft(message) for message in self.view.messages]

    def follow(self, made: View) -> None:
        """Continue from the view that the edits so far made, in which later thinking is dropped."""
        self.rows = [_read_draft(message) for message in made.messages]

    def insert(self, draft: Draft) -> None:
        insort(self.rows, draft, key=_seq)

    def remove(self, some: list[Draft]) -> None:
        gone = {draft.seq for draft in some}
        self.rows = [draft for draft in self.rows if draft.seq not in gone]

    def list_sent(self) -> list[Draft]:
        """Return the messages that are sent: those with blocks."""
        return [draft for draft in self.rows if draft.blocks]

    def list_exchange(self, at: int) -> list[Draft]:
        """Return the exchange around the message at an index: from its prompt to the next one."""
        starts = [row for row, draft in enumerate(self.rows) if draft.is_prompt]
        start = max((row for row in starts if row <= at), default=0)
        end = min((row for row in starts if row > at), default=len(self.rows))
        return self.rows[start:end]

    def list_exchanges(self) -> list[list[Draft]]:
        """Return all exchanges in order."""
        found: list[list[Draft]] = []
        for draft in self.rows:
            if draft.is_prompt or not found:
                found.append([])
            found[-1].append(draft)
        return found

    def list_runs(self) -> list[list[Draft]]:
        """Return the sent messages as the API merges them: in runs of one role."""
        return [list(run) for _, run in groupby(self.list_sent(), lambda one: one.role)]

    def find_last_prompt(self) -> int:
        """Return the index of the last prompt; -1 without one."""
        return max((at for at, draft in enumerate(self.rows) if draft.is_prompt), default=-1)

    def list_edits(self) -> list[Edit]:
        """Return the edits that turn the view into the drafts."""
        wanted = {draft.seq: draft for draft in self.rows}
        edits: list[Edit] = []
        known: set[int] = set()
        for message in self.view.messages:
            known.add(message.seq)
            draft = wanted.get(message.seq)
            edits += _list_removal(message) if draft is None else _list_changes(message, draft)
        edits += [_insert(draft) for draft in self.rows if draft.seq not in known]
        return edits


def read_value(block: Block) -> dict[str, Any] | None:
    """Return a block's value; None if its text is no block."""
    try:
        return block.value
    except WireError:
        return None


def _read_draft(message: Message) -> Draft:
    try:
        blocks = list(message.blocks)
        is_broken = any(read_value(block) is None for block in blocks)
    except WireError:
        blocks, is_broken = [], True
    return Draft(message.seq, message.kind, blocks, is_broken)


def _list_removal(message: Message) -> list[Edit]:
    return [] if message.is_empty else [SpliceMessages(message.seq, message.seq)]


def _list_changes(message: Message, draft: Draft) -> list[Edit]:
    try:
        old = [block.text for block in message.blocks]
    except WireError:
        return [_insert(draft)] if draft.blocks else [SpliceMessages(message.seq, message.seq)]
    new = [block.text for block in draft.blocks]
    if draft.kind != message.kind:
        return [_insert(draft)]
    if old == new:
        return []
    if not new:
        return [SpliceMessages(message.seq, message.seq)]
    first = _count_alike(old, new)
    last = _count_alike(old[first:][::-1], new[first:][::-1])
    put = draft.blocks[first : len(new) - last]
    # Inserted blocks come after the edit: thinking among them would be signed over another prefix.
    texts = tuple(block.text for block in put if block.type not in THINKING)
    return [SpliceBlocks(message.seq, first, len(old) - last - first, texts)]


def _count_alike(old: list[str], new: list[str]) -> int:
    pairs = zip(old, new, strict=False)
    return next((at for at, (one, two) in enumerate(pairs) if one != two), min(len(old), len(new)))


def _insert(draft: Draft) -> SpliceMessages:
    content = wire.join(block.text for block in draft.blocks if block.type not in THINKING)
    return SpliceMessages(draft.seq, draft.seq, ((draft.seq, draft.kind, content),))


def _seq(draft: Draft) -> int:
    return draft.seq


def find_row(rows: list[Draft], seq: int) -> int | None:
    """Return the index of the message with that number; None if there is none."""
    at = bisect_left(rows, seq, key=_seq)
    return at if at < len(rows) and rows[at].seq == seq else None
