"""A conversation as one JSON line: the record that an import reads.

`messages` are those of the shown path; their content is the wire text that is sent, including the
data of files. Other versions are in `branches`, each message with its parent. A record is one
conversation and not a tree: **an import reads `messages` alone**, so an imported conversation has
no versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from conversations.context.view import wire
from conversations.log.attachment_texts import expand_attachments
from conversations.log.entries import iterate_messages, iterate_transformations, list_path_numbers
from conversations.models import Conversation, Message, Transformation


def write_record(conversation: Conversation, *, with_events: bool = False) -> Iterator[str]:
    """Yield the line in pieces, ending with a line break."""
    head = {
        "id": str(conversation.public_id),
        "title": conversation.title,
        "model": conversation.model,
        "effort": conversation.effort or None,
        "created_at": _format_time(conversation.created_at),
        "updated_at": _format_time(conversation.updated_at),
        "system": conversation.instructions or None,
        "folder": conversation.folder.name if conversation.folder else None,
    }
    path = list_path_numbers(conversation)
    others: list[int] = []
    yield wire.encode(head)[:-1]
    yield ',"messages":'
    yield from _join_array(_shown(conversation, path, others))
    if others:
        yield ',"branches":'
        yield from _join_array(
            _format_message(row) for row in iterate_messages(conversation) if row.seq in others
        )
    if with_events:
        yield ',"events":'
        yield from _join_array(_format_event(row) for row in iterate_transformations(conversation))
    yield "}\n"


def _shown(conversation: Conversation, path: set[int], others: list[int]) -> Iterator[str]:
    for row in iterate_messages(conversation):
        if row.seq in path:
            yield _format_message(row)
        else:
            others.append(row.seq)


def _join_array(elements: Iterable[str]) -> Iterator[str]:
    before = "["
    for element in elements:
        yield before + element
        before = ","
    yield "[]" if before == "[" else "]"


def _format_message(row: Message) -> str:
    role = "assistant" if row.kind == Message.Kind.ANSWER else "user"
    head = {"role": role, "seq": row.seq, "parent": row.parent, "at": _format_time(row.created_at)}
    content = (
        expand_attachments(row.conversation_id, row.content)
        if row.kind == "prompt"
        else row.content
    )
    return f'{wire.encode(head)[:-1]},"content":{content}}}'


def _format_event(row: Transformation) -> str:
    head = {
        "seq": row.seq,
        "parent": row.parent,
        "at": _format_time(row.created_at),
        "kind": row.kind,
        "outcome": row.outcome,
        "number": row.number,
        "threshold": row.threshold,
        "source": row.source,
        "setting": row.setting,
        "tokens_before": row.tokens_before,
        "tokens_after": row.tokens_after,
        "note": row.note,
        "reason": row.reason,
    }
    return f'{wire.encode(head)[:-1]},"edits":{row.edits}}}'


def _format_time(at: datetime) -> str:
    return at.isoformat()
