"""What a change took from the view, and what a person may have sent in full again."""

from __future__ import annotations

from conversations.context.edits import SpliceBlocks, load
from conversations.context.recallable import message_id
from conversations.context.view import Block, Message
from conversations.context.zone import OURS
from conversations.models import Conversation, Transformation
from conversations.queries.path import path

#: Kinds of transformation that take something a person may want back.
_TAKING = ("ingest", "compaction", "shrink", *OURS)


def can_restore(row: Transformation) -> bool:
    """Say whether what the change took can be asked for again."""
    return row.outcome == "applied" and row.kind in _TAKING


def can_undo(conversation: Conversation, row: Transformation) -> bool:
    """Say whether a restore can be taken back: nothing came behind it, and it put something in."""
    is_restore = row.kind == "restore" and row.outcome == "applied"
    return is_restore and row.tokens_after > row.tokens_before and conversation.tip == row.seq


def taken(conversation: Conversation, row: Transformation) -> list[str]:
    """Name the originals that a change took, as recall names them."""
    if not can_restore(row):
        return []
    log = [entry.seq for entry in path(conversation, row.parent) if isinstance(entry, Message)]
    found: list[str] = []
    for edit in load(row.edits):
        if isinstance(edit, SpliceBlocks):
            found += [replaced(edit.seq, Block(text), row.kind) for text in edit.blocks]
        else:
            found += [message_id(seq) for seq in log if edit.first <= seq <= edit.last]
    return [name for name in dict.fromkeys(found) if name]


def replaced(seq: int, put: Block, kind: str) -> str:
    """Name the original in whose place a block was put; "" for what the engine added itself."""
    if kind in OURS:
        return ""
    return put.id if put.type == "tool_result" else message_id(seq)
