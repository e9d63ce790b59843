"""The originals that a change removed from the view, and which changes can be undone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.db.models import Q

from conversations.context.steps.exclude import EXCLUDE
from conversations.context.steps.kinds import OURS, RESTORABLE
from conversations.context.steps.recall_list import message_id
from conversations.context.steps.summary_versions import EDIT, REWRITE
from conversations.context.view.edits import Edit, SpliceBlocks, load_edits
from conversations.context.view.view import Block, Message
from conversations.log.contents import read_contents
from conversations.log.path import read_path
from conversations.log.tree import build_path_condition
from conversations.models import Conversation, Transformation

#: The setting of an entry that undoes another one.
UNDO = "undo"


def can_restore(row: Transformation) -> bool:
    """Return whether what the change removed can be restored."""
    is_taking = row.kind in RESTORABLE and row.setting not in (EDIT, REWRITE)
    return row.outcome == "applied" and is_taking


def is_manual(row: Transformation) -> bool:
    """Return whether a person made the change and it changed something."""
    if row.outcome != "applied" or row.actor_id is None or row.setting == UNDO:
        return False
    # Older entries lack the setting: there an undone restore is recognised by its size.
    return row.kind != "restore" or row.tokens_after > row.tokens_before


def can_undo(conversation: Conversation, row: Transformation) -> bool:
    """Return whether a person's change can be undone: nothing followed it."""
    return is_manual(row) and conversation.tip == row.seq


def list_undone(rows: Iterable[Transformation]) -> frozenset[int]:
    """Return the numbers of those of a turn's changes that were undone."""
    kept = list(rows)
    undone = {(row.parent, row.seq) for row in kept if row.setting == UNDO}
    return frozenset(
        row.seq
        for row in kept
        if row.setting != UNDO and any(row.parent == p and row.seq < seq for p, seq in undone)
    )


def list_excluded(conversation: Conversation) -> frozenset[str]:
    """Return the originals that a person excluded on the shown path; two queries."""
    if not read_contents(conversation).changes:
        return frozenset()
    rows = conversation.transformations.filter(
        build_path_condition("turn", conversation), outcome="applied"
    )
    rows = rows.filter(Q(setting=EXCLUDE) | Q(kind="restore")).order_by("-seq")
    found: dict[str, bool] = {}
    bound = conversation.tip
    for seq, parent, kind, edits in rows.values_list("seq", "parent", "kind", "edits"):
        if seq > bound:
            continue
        if edits == "[]":
            # Everything after its parent was undone.
            bound = parent
        for name in _list_named(load_edits(edits)):
            found.setdefault(name, kind != "restore")
    return frozenset(name for name, is_out in found.items() if is_out)


def _list_named(edits: Iterable[Edit]) -> Iterator[str]:
    for edit in edits:
        if isinstance(edit, SpliceBlocks):
            yield from (name_original(edit.seq, Block(text), "") for text in edit.blocks)
            continue
        for seq, kind, content in edit.messages:
            yield message_id(seq)
            yield from (block.id for block in Message.parse(seq, kind, content).blocks)


def list_removed(conversation: Conversation, row: Transformation) -> list[str]:
    """Return the ids of the originals to pin for a restore of what a change removed.

    The fewest, as each becomes a pin, and also messages of its range that an earlier change had
    taken; what may have been recalled since is more and less (`recalls.count_recalls`).
    """
    if not can_restore(row):
        return []
    log = [entry.seq for entry in read_path(conversation, row.parent) if isinstance(entry, Message)]
    found: list[str] = []
    for edit in load_edits(row.edits):
        if isinstance(edit, SpliceBlocks):
            found += [name_original(edit.seq, Block(text), row.kind) for text in edit.blocks]
        else:
            found += [message_id(seq) for seq in log if edit.first <= seq <= edit.last]
    return [name for name in dict.fromkeys(found) if name]


def name_original(seq: int, put: Block, kind: str) -> str:
    """Return the id of the original that a block replaced; "" for blocks the engine added."""
    if kind in OURS:
        return ""
    return put.id if put.type == "tool_result" else message_id(seq)
