"""The lists of the record as files: conversations, transformations and calls, figures only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.db.models import QuerySet

from conversations.admin.csv_export import Rows, iterate_pages, iterate_rows
from conversations.admin.review_figures import add_up_figures
from conversations.budgets.money_history import DAMAGED
from conversations.budgets.usage.cells import Cell, format_dollars
from conversations.models import ApiCall, ApiResult

_CONVERSATIONS = (
    "conversation", "user", "model", "created_at", "updated_at", "cost_dollars", "reductions",
    "tokens_freed", "rejected_summaries", "recalls",
)  # fmt: skip
_TRANSFORMATIONS = (
    "conversation", "user", "turn", "entry", "created_at", "kind", "outcome", "setting", "measured",
    "source", "threshold", "tokens_before", "tokens_after", "bytes_before", "bytes_after",
    "policy", "summary_dollars", "by", "note",
)  # fmt: skip
_CALLS = (
    "call", "conversation", "user", "turn", "number", "sent_at", "purpose", "model", "status",
    "input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens", "cost_dollars",
    "cost_basis", "stop_reason", "request_id", "first_event_ms", "duration_ms",
)  # fmt: skip


def write_conversations(rows: QuerySet[Any]) -> Rows:
    yield _CONVERSATIONS
    for page in iterate_pages(rows):
        found = add_up_figures([row.pk for row in page])
        for row in page:
            one = found[row.pk]
            yield (
                str(row.public_id), row.owner.username, row.model, _format_time(row.created_at),
                _format_time(row.updated_at), format_dollars(one.cost), one.reductions, one.freed,
                one.rejected, one.recalls,
            )  # fmt: skip


def write_transformations(rows: QuerySet[Any]) -> Rows:
    yield _TRANSFORMATIONS
    for row in iterate_rows(rows.defer(None).defer("edits", "reason", "decision")):
        result = getattr(row.summary_call, "result", None)
        yield (
            *_name_place(row), row.seq, _format_time(row.created_at), row.kind, row.outcome,
            row.setting, row.number, row.source, row.threshold, row.tokens_before,
            row.tokens_after, row.bytes_before, row.bytes_after, _name_policy(row.policy),
            format_dollars(result.cost_micros) if result else None,
            row.actor.username if row.actor else "", row.note,
        )  # fmt: skip


def write_calls(rows: QuerySet[Any]) -> Rows:
    yield _CALLS
    for row in iterate_rows(rows.select_related("turn")):
        yield (
            row.pk, *_name_place(row), row.number, _format_time(row.sent_at), row.purpose,
            row.model, *_list_result(row),
        )  # fmt: skip


def _list_result(row: ApiCall) -> Iterator[Cell]:
    """Yield the cells of a call's result; empty ones while there is none."""
    found: ApiResult | None = getattr(row, "result", None)
    if found is None:
        yield "in doubt"
        yield from (None,) * 10
        return
    yield found.status
    yield from (found.input_tokens, found.cache_read_tokens, found.cache_write_tokens)
    yield from (found.output_tokens, format_dollars(found.cost_micros), found.cost_basis)
    yield from (found.stop_reason, found.request_id, found.first_event_ms, found.duration_ms)


def _name_policy(text: str) -> str:
    """Return the preset of a recorded policy; of a damaged one the mark of that."""
    try:
        return str(json.loads(text)["name"])
    except (ValueError, TypeError, LookupError):
        return DAMAGED


def _name_place(row: Any) -> tuple[Cell, ...]:
    owner = row.conversation.owner.username
    return str(row.conversation.public_id), owner, row.turn.number if row.turn else None


def _format_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
