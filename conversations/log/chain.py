"""Hash chains: each append-only row carries the digest of all rows before it in its chain.

A row's chain value is the SHA-256 of the value before it and of the row's own fields as canonical
JSON (sorted keys, integers and text only). Changing, losing or swapping a row breaks the chain at
that link; `manage.py verify` names the first one. A field that was added later is hashed only if it
is not empty: so older rows keep their values, and emptying such a field breaks the row's link.

A row of a conversation is in the conversation's chain and is erased with it; any other row is in
the site's chain. The row that stores the end of a chain is locked while the chain grows. Every
writer locks in one order: conversations, windows, then the site's end. A conversation keeps beside
the end how many of its calls have ended, and what they have cost.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.utils import timezone

from conversations.context.view import wire
from conversations.log.page_version import raise_locked
from conversations.log.prepared_rows import read_rows, shape_of
from conversations.models import (
    ApiCall,
    ApiResult,
    Approval,
    BookedDifference,
    Chained,
    Conversation,
    Crossing,
    DatabaseMove,
    Decision,
    Erasure,
    ErasureProof,
    Grant,
    HoldRelease,
    Impersonation,
    ImpersonationEnd,
    InvitationDecision,
    LedgerEntry,
    LegalHold,
    McpDecision,
    Message,
    MoneyRecord,
    Pin,
    SiteChain,
    Transformation,
)

#: The chained models of a conversation, each with the lookup to its conversation.
OWNED: dict[type[Chained], str] = {
    Message: "conversation",
    Transformation: "conversation",
    ApiCall: "conversation",
    ApiResult: "call__conversation",
    LedgerEntry: "call__conversation",
    Pin: "conversation",
    Approval: "conversation",
    Decision: "conversation",
}
#: The chained models of the site, each with the condition on rows of its chain.
SITE: dict[type[Chained], dict[str, Any]] = {
    LedgerEntry: {"call": None},
    Grant: {},
    Crossing: {},
    McpDecision: {},
    InvitationDecision: {},
    Erasure: {},
    ErasureProof: {},
    LegalHold: {},
    HoldRelease: {},
    Impersonation: {},
    ImpersonationEnd: {},
    DatabaseMove: {},
    MoneyRecord: {},
    BookedDifference: {},
}
#: A row that stores the end of a chain.
End = Conversation | SiteChain

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
    LedgerEntry: (
        "window_id", "call_id", "kind", "amount", "reason", "actor_id", "created_at", "form",
    ),
    Grant: (
        "budget_id", "user_id", "amount", "starts_at", "expires_at", "reason", "actor_id",
        "created_at", "form",
    ),
    Crossing: ("window_id", "percent", "spent", "limit", "created_at"),
    McpDecision: (
        "server_id", "tool", "kind", "actor_id", "note", "definition", "digest", "created_at",
    ),
    InvitationDecision: ("invitation_id", "kind", "actor_id", "note", "created_at"),
    Erasure: (
        "owner_id", "conversation", "begun_at", "deleted_at", "due_at", "messages",
        "transformations", "calls", "links", "tail", "cost_micros", "usage", "erased_at",
    ),
    ErasureProof: (
        "erasure_id", "phrases", "words", "places", "found", "backup", "proven_at",
    ),
    LegalHold: ("owner_id", "conversation", "reason", "actor_id", "created_at"),
    HoldRelease: ("hold_id", "reason", "actor_id", "created_at"),
    Impersonation: ("person_id", "actor_id", "reason", "until", "created_at"),
    ImpersonationEnd: ("impersonation_id", "created_at"),
    DatabaseMove: ("source", "target", "rows", "digest", "begun_at", "created_at"),
    MoneyRecord: ("table", "key", "content", "created_at"),
    BookedDifference: (
        "day", "model", "unit", "amount", "windows", "form", "reason", "actor_id", "created_at",
    ),
}  # fmt: skip
_ADDED: dict[type[Chained], tuple[str, ...]] = {
    Transformation: ("decision",),
    ApiCall: ("cost_centre_id",),
    ApiResult: ("bill",),
    LedgerEntry: ("overrun", "limit"),
    Approval: ("words",),
    Erasure: ("rule",),
    MoneyRecord: ("actor_id", "reason"),
}


def lock_conversation(conversation_id: int) -> Conversation:
    """Lock the conversation's row, which orders the writers of its log and chain."""
    shape = shape_of(Conversation)
    lock = " FOR UPDATE" if connection.features.has_select_for_update else ""
    found = read_rows(
        shape,
        f"SELECT {shape.columns()} FROM conversations_conversation WHERE id = %s{lock}",  # noqa: S608
        [conversation_id],
    )
    if not found:
        raise Conversation.DoesNotExist(f"conversation {conversation_id}")
    return found[0]


def lock_site_chain() -> SiteChain:
    """Lock the end of the site's chain; it is always the last lock taken."""
    return SiteChain.objects.select_for_update().get_or_create(pk=1)[0]


def append_row(row: Chained, end: End, *, also: tuple[str, ...] = (), is_last: bool = True) -> None:
    """Save the row as the next link of the chain, and the chain's end, which is locked.

    `also` names further fields of a conversation to save with it. With `is_last` false the end is
    not saved: the caller appends another row, which raises the page version, in this transaction.
    """
    _link_row(row, end)
    shape_of(type(row)).insert(row)
    if is_last:
        _save_end(end, also, is_shown=_is_shown(row))


def append_rows(rows: Sequence[Chained], end: End) -> None:
    """Save many rows as the next links, like `append_row` for each, in a few statements."""
    if not rows:
        return
    for row in rows:
        _link_row(row, end)
    for kind in dict.fromkeys(type(row) for row in rows):
        kind._default_manager.bulk_create([row for row in rows if type(row) is kind], 200)
    _save_end(end, (), is_shown=any(map(_is_shown, rows)))


def _link_row(row: Chained, end: End) -> None:
    row.link = end.links + 1
    row.chain = compute_link(end.chain, row)
    end.links, end.chain = row.link, row.chain
    if isinstance(row, ApiResult) and isinstance(end, Conversation):
        end.ended_calls += 1
        end.cost_micros += row.cost_micros


def _is_shown(row: Chained) -> bool:
    """Return whether the row raises the page version: calls do only for replies, money never."""
    if isinstance(row, ApiCall):
        return row.purpose == ApiCall.Purpose.REPLY
    return not isinstance(row, LedgerEntry)


def _save_end(end: End, also: tuple[str, ...], *, is_shown: bool) -> None:
    if not isinstance(end, Conversation):
        end.save(update_fields=["links", "chain"])
        return
    names = ("links", "chain", "head", "tip", "ended_calls", "cost_micros", "updated_at", *also)
    if is_shown:
        raise_locked(end)
        names += ("version",)
    end.updated_at = timezone.now()
    save_columns(end, names)


def save_columns(row: Conversation, names: Sequence[str]) -> None:
    """Save these columns of a locked conversation.

    Raw SQL, because it runs several times in a turn, and the ORM takes ten times as long to write
    the statement as it takes to run.
    """
    fields: list[Any] = [Conversation._meta.get_field(name) for name in names]
    values = [one.get_db_prep_save(getattr(row, one.name), connection) for one in fields]
    columns = ", ".join(f'"{one.column}" = %s' for one in fields)
    table = Conversation._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(f'UPDATE "{table}" SET {columns} WHERE id = %s', [*values, row.pk])  # noqa: S608
        if cursor.rowcount != 1:
            raise Conversation.DoesNotExist(f"conversation {row.pk}")


def compute_link(before: str, row: Chained) -> str:
    """Return the chain value of a row that follows the value `before`."""
    kind = type(row)
    fields = {name: _to_json(getattr(row, name)) for name in _FIELDS[kind]}
    fields |= {name: value for name in _ADDED.get(kind, ()) if (value := getattr(row, name))}
    text = json.dumps(
        ["v1", kind.__name__, row.link, fields], sort_keys=True, separators=(",", ":")
    )
    return wire.digest(before + "\n" + text)


def _to_json(value: object) -> object:
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="microseconds")
        case date():
            return value.isoformat()
        case UUID():
            return str(value)
        case _:
            return value
