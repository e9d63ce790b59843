"""The hash chain of a conversation: each append-only row carries the digest of all before it.

A row's link is SHA-256 over the link before it and the row's own fields as canonical JSON (sorted
keys, integers and text only). Changing, losing or swapping a row breaks the chain at its place;
`manage.py verify` names the first one. A field added later counts where it is not empty: so the
rows from before it keep their links, and emptying it in a row that has it breaks its link.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from conversations.context import wire
from conversations.models import (
    ApiCall,
    ApiResult,
    Approval,
    Chained,
    Conversation,
    Decision,
    Message,
    Pin,
    Transformation,
)

_FIELDS: dict[type[Chained], tuple[str, ...]] = {
    Message: (
        "conversation_id", "seq", "parent", "turn_id", "kind", "content", "estimate", "created_at",
    ),
    Transformation: (
        "conversation_id", "seq", "parent", "turn_id", "kind", "outcome", "number", "threshold",
        "source", "setting", "edits", "policy", "tokens_before", "tokens_after", "bytes_before",
        "bytes_after", "note", "reason", "summary_call_id", "actor_id", "created_at",
    ),
    ApiCall: (
        "conversation_id", "turn_id", "number", "purpose", "model", "envelope_id", "tip",
        "messages_id", "body_digest", "body_bytes", "estimated_tokens", "view_tokens",
        "overhead_tokens", "view_edits", "binding", "max_tokens", "sent_at",
    ),
    ApiResult: (
        "call_id", "answer_id", "status", "request_id", "http_status", "error_type",
        "error_message", "stop_reason", "usage", "input_tokens", "output_tokens",
        "cache_read_tokens", "cache_write_tokens", "cost_micros", "cost_basis", "first_event_ms",
        "duration_ms", "ended_at",
    ),
    Pin: ("conversation_id", "tool_use_id", "seq", "is_pinned", "actor_id", "created_at"),
    Approval: (
        "conversation_id", "call_id", "arguments_digest", "destination", "reason", "sources",
        "created_at", "expires_at",
    ),
    Decision: ("conversation_id", "approval_id", "verdict", "actor_id", "created_at"),
}  # fmt: skip
_ADDED: dict[type[Chained], tuple[str, ...]] = {Transformation: ("decision",)}


def locked(conversation_id: int) -> Conversation:
    """Lock the conversation's row: it orders the writers of its log and chain."""
    return Conversation.objects.select_for_update().get(pk=conversation_id)


def append(row: Chained, conversation: Conversation) -> None:
    """Save the row as the next link; `conversation` is locked and saved with its new end."""
    row.link = conversation.links + 1
    row.chain = link_digest(conversation.chain, row)
    row.save()
    conversation.links, conversation.chain = row.link, row.chain
    conversation.save(update_fields=["head", "tip", "links", "chain", "updated_at"])


def extend(rows: Sequence[Chained], conversation: Conversation) -> None:
    """Save many rows as the next links; the same as `append` for each, in a few statements."""
    for row in rows:
        row.link = conversation.links + 1
        row.chain = link_digest(conversation.chain, row)
        conversation.links, conversation.chain = row.link, row.chain
    kinds: tuple[type[Chained], ...] = (Message, Transformation, Pin)
    for kind in kinds:
        some = [row for row in rows if isinstance(row, kind)]
        kind._default_manager.bulk_create(some, batch_size=200)
    conversation.save(update_fields=["head", "tip", "links", "chain", "updated_at"])


def link_digest(before: str, row: Chained) -> str:
    """Give the chain value of a row that follows `before`."""
    kind = type(row)
    fields = {name: _plain(getattr(row, name)) for name in _FIELDS[kind]}
    fields |= {name: value for name in _ADDED.get(kind, ()) if (value := getattr(row, name))}
    text = json.dumps(
        ["v1", kind.__name__, row.link, fields], sort_keys=True, separators=(",", ":")
    )
    return wire.digest(before + "\n" + text)


def _plain(value: object) -> object:
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="microseconds")
        case UUID():
            return str(value)
        case _:
            return value
