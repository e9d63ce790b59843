"""The path of a conversation: its entries from the first to a tip, and the view they fold to.

This is the only place where the log is read for the model. What is sent is joined from stored text;
in prompts, references to files (context/view/attachment_refs.py) are replaced by the files' texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, cast

from django.db import connection
from django.db.models import Q

from conversations.context.steps.kinds import TransformationKind
from conversations.context.view import attachment_refs, edits
from conversations.context.view.view import Kind, Message, View
from conversations.log.attachment_texts import read_attachment_texts
from conversations.log.contents import read_contents
from conversations.log.findings import DAMAGE, read_decodable, split_chunks
from conversations.models import Conversation, Transformation
from conversations.models import Message as MessageRow


@dataclass(frozen=True, slots=True)
class Change:
    """A transformation on the path; if it was not applied, it has no edits."""

    seq: int
    kind: TransformationKind
    outcome: str
    edits: str
    reason: str = ""
    #: The person who made it by hand; None for the engine.
    actor: int | None = None
    #: The tokens of the view before it.
    tokens: int = 0


#: Raw SQL: every turn runs it, and the ORM takes longer to write it than it takes to run.
_MESSAGES_FROM = """
SELECT seq, parent, kind, content, estimate, chain FROM conversations_message
WHERE conversation_id = %s AND seq >= %s ORDER BY seq"""
#: The full log: each entry by its number, with the number of its parent.
Entries = dict[int, tuple[int, Message | Change]]


def read_entries(conversation: Conversation) -> Entries:
    """Return every entry of the log, of all branches."""
    return _expand_files(conversation, _link_entries(_read_rows(conversation, Q())))


def read_entries_after(conversation: Conversation, seq: int) -> Entries:
    """Return the entries after one, of all branches."""
    return _expand_files(conversation, _read_rows(conversation, Q(seq__gt=seq)))


def read_entries_from(conversation: Conversation, seq: int) -> tuple[str, Entries]:
    """Return the value of the chain at a message, "" if it is none, and the entries after it."""
    rows = read_decodable(partial(_read_messages_from, conversation.pk, seq))
    chain = rows[0][-1] if rows and rows[0][0] == seq else ""
    found: Entries = {
        number: (parent, Message(number, kind, content, estimate))
        for number, parent, kind, content, estimate, _ in rows
        if number > seq
    }
    found |= _read_changes(conversation, Q(seq__gt=seq))
    return chain, _expand_files(conversation, found)


def _read_messages_from(conversation_id: int, seq: int) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(_MESSAGES_FROM, [conversation_id, seq])
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


def read_messages(conversation: Conversation, numbers: Sequence[int]) -> dict[int, Message]:
    """Return these messages as they were stored."""
    found: Entries = {}
    for some in split_chunks(numbers):
        found |= _read_messages(conversation, Q(seq__in=some))
    read = _expand_files(conversation, found)
    return {seq: one for seq, (_, one) in read.items() if isinstance(one, Message)}


def _read_messages(conversation: Conversation, where: Q) -> Entries:
    messages = MessageRow.objects.filter(where, conversation=conversation).order_by("seq")
    rows = messages.values_list("seq", "parent", "kind", "content", "estimate")
    return {
        seq: (parent, Message(seq, cast("Kind", kind), content, estimate))
        for seq, parent, kind, content, estimate in read_decodable(lambda: list(rows))
    }


def _read_rows(conversation: Conversation, where: Q) -> Entries:
    return _read_messages(conversation, where) | _read_changes(conversation, where)


def _read_changes(conversation: Conversation, where: Q) -> Entries:
    found: Entries = {}
    if not read_contents(conversation).changes:
        return found
    changes = Transformation.objects.filter(where, conversation=conversation).order_by("seq")
    rows = changes.values_list(
        "seq", "parent", "kind", "outcome", "edits", "reason", "actor_id", "tokens_before"
    )
    for seq, parent, kind, outcome, edited, reason, actor, tokens in read_decodable(
        lambda: list(rows)
    ):
        made = Change(seq, cast("TransformationKind", kind), outcome, edited, reason, actor, tokens)
        found[seq] = (parent, made)
    return found


def _link_entries(found: Entries) -> Entries:
    """Link an entry whose parent is lost to the newest one before it.

    Only a damaged database has such an entry; verification reports it, and the conversation
    stays usable.
    """
    lost = {parent for parent, _ in found.values() if parent and parent not in found}
    if not lost:
        return found
    return {
        seq: (_find_before(found, min(seq, parent)) if parent in lost else parent, entry)
        for seq, (parent, entry) in found.items()
    }


def _find_before(found: Entries, number: int) -> int:
    return max((seq for seq in found if seq < number), default=0)


def _expand_files(conversation: Conversation, found: Entries) -> Entries:
    """Replace references to files by the files' texts; a reference to a lost file stays."""
    names = {seq: digests for seq, (_, entry) in found.items() if (digests := _list_digests(entry))}
    texts = read_attachment_texts(
        conversation.pk, {name for some in names.values() for name in some}
    )
    for seq in names:
        parent, entry = found[seq]
        if isinstance(entry, Message):
            resolved: Message | Change = replace(
                entry, content=attachment_refs.expand_known(entry.content, texts)
            )
        else:
            put = attachment_refs.expand_edits(edits.load_edits(entry.edits), texts)
            resolved = replace(entry, edits=edits.dump_edits(put))
        found[seq] = (parent, resolved)
    return found


def _list_digests(entry: Message | Change) -> list[str]:
    try:
        return _read_digests(entry)
    except DAMAGE:
        # Unreadable text has no references to expand.
        return []


def _read_digests(entry: Message | Change) -> list[str]:
    if isinstance(entry, Message):
        return (
            [one.digest for one in attachment_refs.list_references(entry.content)]
            if entry.kind == "prompt"
            else []
        )
    if not attachment_refs.may_hold_reference(entry.edits):
        return []
    return [
        one.digest
        for one in attachment_refs.list_references_in_edits(edits.load_edits(entry.edits))
    ]


def read_path(conversation: Conversation, tip: int | None = None) -> list[Message | Change]:
    """Return the entries up to `tip` (by default the conversation's own), first to last."""
    log = read_entries(conversation)
    found: list[Message | Change] = []
    at = conversation.tip if tip is None else tip
    if tip is None and at not in log:
        at = _find_before(log, at)
    while at:
        at, entry = log[at]
        found.append(entry)
    return found[::-1]


def fold_entry(view: View, entry: Message | Change) -> View:
    """Return the view after one more entry.

    A change that cannot be applied to what is stored changes nothing: its rows, or those it names,
    were damaged later. Verification reports that, and the conversation stays usable.
    """
    if isinstance(entry, Message):
        return view.append(entry)
    if entry.outcome == "expected":
        return view.with_cleared(tuple(entry.reason.split()))
    if entry.outcome != "applied":
        return view
    try:
        return edits.apply(view, entry.kind, edits.load_edits(entry.edits))
    except DAMAGE:
        return view


def fold_path(entries: Iterable[Message | Change], view: View | None = None) -> View:
    """Return the view after the entries, starting from `view` or from an empty one."""
    return reduce(fold_entry, entries, View() if view is None else view)
