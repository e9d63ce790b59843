"""Checkpoints of the view: a turn loads what its view needs, and not what was removed.

The view is the fold of a path. It is stored after every `EVERY` entries, and the next turn
continues the fold from there. A checkpoint is derived: the record does not contain it, calls are
rebuilt from the log without it, and verification compares it with the fold. One of another path, or
one that cannot be read, is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field, replace
from functools import partial

from conversations.context.steps import api_compaction
from conversations.context.steps.kinds import ASKS_MODEL
from conversations.context.view import edits
from conversations.context.view.stored_view import read_view, write_view
from conversations.context.view.view import Message, View
from conversations.log.findings import DAMAGE
from conversations.log.path import (
    Change,
    Entries,
    fold_path,
    read_entries_after,
    read_entries_from,
    read_messages,
    read_path,
)
from conversations.models import Conversation, ViewCheckpoint

#: Number of entries after which a rejected summary may be tried again.
REMEMBERED = 60
#: Entries between two checkpoints.
EVERY = 100


@dataclass(frozen=True, slots=True)
class Summary:
    """A change by the model, applied or not; `back` entries follow it on the path."""

    back: int
    outcome: str
    #: The person who made it by hand; None for the engine.
    actor: int | None
    #: The tokens of the view before it.
    tokens: int


@dataclass(frozen=True, slots=True)
class Start:
    """The start of a fold: after entry `seq`; 0 is the beginning of the log."""

    seq: int = 0
    view: View = field(default_factory=View)
    answers: int = 0
    #: The entry that inserted the compaction block in view; 0: there is none.
    compaction: int = 0
    #: The summaries among the last entries, newest first.
    summaries: tuple[Summary, ...] = ()


@dataclass(frozen=True, slots=True)
class LoadedPath:
    """A path from the start of its fold to its tip."""

    start: Start
    entries: list[Message | Change]

    def fold(self) -> View:
        """Return the view at the tip."""
        return fold_path(self.entries, self.start.view)

    def count_answers(self) -> int:
        return self.start.answers + sum(map(_is_answer, self.entries))

    def list_summaries(self) -> tuple[Summary, ...]:
        """Return the summaries among the last `REMEMBERED` entries, newest first."""
        read = [
            Summary(back, entry.outcome, entry.actor, entry.tokens)
            for back, entry in enumerate(self.entries[: -REMEMBERED - 1 : -1])
            if isinstance(entry, Change) and entry.kind in ASKS_MODEL
        ]
        length = len(self.entries)
        before = [replace(one, back=one.back + length) for one in self.start.summaries]
        return (*read, *(one for one in before if one.back < REMEMBERED))

    def find_message(self, seq: int) -> Message | None:
        """Return a message among the entries that were read."""
        found = next((one for one in self.entries if one.seq == seq), None)
        return found if isinstance(found, Message) else None

    def select_answers(self, numbers: Iterable[int]) -> set[int]:
        """Return those answers of the path's turns that are on the path itself."""
        read = {one.seq for one in self.entries if _is_answer(one)}
        return {seq for seq in numbers if seq in read or seq <= self.start.seq}

    def find_compaction(self) -> int:
        """Return the number of the last entry that inserted a compaction block; 0: none did."""
        changes = (one for one in reversed(self.entries) if isinstance(one, Change))
        return next((one.seq for one in changes if _puts_block(one)), self.start.compaction)

    def continue_from(self) -> Start:
        """Return the start of a fold that continues at the tip."""
        seq = self.entries[-1].seq if self.entries else self.start.seq
        answers, compaction = self.count_answers(), self.find_compaction()
        return Start(seq, self.fold(), answers, compaction, self.list_summaries())


def load_path(conversation: Conversation) -> LoadedPath:
    """Return the path to the conversation's tip, from the checkpoint if that is on the path."""
    if conversation.head >= EVERY:
        row = ViewCheckpoint.objects.filter(conversation=conversation).first()
        found = _load_from(conversation, row) if row is not None else None
        if found is not None:
            return found
    return LoadedPath(Start(), read_path(conversation))


def load_path_from(conversation: Conversation, start: Start, chain: str) -> LoadedPath | None:
    """Return the path from a start that ended with a message at this value of the chain.

    None if the log has no such message, or if it is not on the path.
    """
    found_chain, log = read_entries_from(conversation, start.seq)
    found = _walk(log, conversation.tip, start.seq)
    return LoadedPath(start, found) if found is not None and found_chain == chain else None


def find_edited(conversation: Conversation, path: LoadedPath, after: int) -> int | None:
    """Return the number of the first message that the path's changes after an entry touched.

    None if they touched none; 0 if the entry is not on the path.
    """
    found: list[Message | Change] | None = path.entries
    if after < path.start.seq:
        found = _walk(read_entries_after(conversation, after), conversation.tip, after)
    if found is None:
        return 0
    changes = (
        one
        for one in found
        if isinstance(one, Change) and one.seq > after and one.outcome == "applied"
    )
    return min((seq for one in changes for seq in _list_touched(one)), default=None)


def _load_from(conversation: Conversation, row: ViewCheckpoint) -> LoadedPath | None:
    found = _walk(read_entries_after(conversation, row.seq), conversation.tip, row.seq)
    if found is None:
        return None
    try:
        return LoadedPath(read_checkpoint(conversation, row), found)
    except DAMAGE:
        return None


def _walk(log: Entries, tip: int, start: int) -> list[Message | Change] | None:
    """Return the entries of a path after a start, first to last; None if that is not on it."""
    at, found = tip, list[Message | Change]()
    while at in log:
        at, entry = log[at]
        found.append(entry)
    return found[::-1] if at == start else None


def read_checkpoint(conversation: Conversation, row: ViewCheckpoint) -> Start:
    """Return what a checkpoint stores; raises one of DAMAGE if it or the log is damaged."""
    view = read_view(row.view, partial(read_messages, conversation))
    summaries = tuple(Summary(*one) for one in row.summaries)
    return Start(row.seq, view, row.answers, row.compaction, summaries)


def save_checkpoint_if_due(conversation: Conversation, path: LoadedPath, unsaved: int = 0) -> bool:
    """Save the view at the end of a path if EVERY entries follow the last checkpoint.

    `unsaved`: how many of them are before the start of the path. Returns whether it was saved.
    """
    if unsaved + len(path.entries) < EVERY:
        return False
    start = path.continue_from()
    ViewCheckpoint.objects.update_or_create(
        conversation=conversation,
        defaults={
            "seq": start.seq,
            "answers": start.answers,
            "compaction": start.compaction,
            "summaries": [astuple(one) for one in start.summaries],
            "view": write_view(start.view, _read_originals(conversation, start.view)),
        },
    )
    return True


def _read_originals(conversation: Conversation, view: View) -> Mapping[int, Message]:
    return read_messages(conversation, [message.seq for message in view.messages])


def _is_answer(entry: Message | Change) -> bool:
    return isinstance(entry, Message) and entry.kind == "answer"


def _list_touched(change: Change) -> list[int]:
    """Return the number of the first message that each edit of a change touches."""
    try:
        found = edits.load_edits(change.edits)
    except DAMAGE:
        return []
    return [one.seq if isinstance(one, edits.SpliceBlocks) else one.first for one in found]


def _puts_block(change: Change) -> bool:
    is_summary = change.kind == "summary" and change.outcome == "applied"
    try:
        return is_summary and api_compaction.inserts_block(edits.load_edits(change.edits))
    except DAMAGE:
        return False
