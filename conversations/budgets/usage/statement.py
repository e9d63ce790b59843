"""A person's calls one by one, as rows of a CSV file that is written while they are read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from functools import partial
from typing import Any

from django.db.models import QuerySet

from conversations.budgets.usage.cells import Cell, format_dollars
from conversations.budgets.usage.days import Span
from conversations.budgets.usage.erased import list_erased_within
from conversations.budgets.usage.sums import filter_calls_within
from conversations.log.findings import read_leniently
from conversations.models import ApiCall, User

#: Rows read at a time, and most rows of one file.
PAGE, MOST_ROWS = 2_000, 200_000
HEAD = (
    "sent at (UTC)", "conversation", "model", "purpose", "calls", "input tokens", "output tokens",
    "cache read tokens", "cache write tokens", "cost in dollars", "cost is",
)  # fmt: skip
_FIELDS = (
    "pk", "sent_at", "conversation__title", "model", "purpose", "result__input_tokens",
    "result__output_tokens", "result__cache_read_tokens", "result__cache_write_tokens",
    "result__cost_micros", "result__cost_basis",
)  # fmt: skip


def list_statement_rows(user: User, span: Span) -> Iterator[tuple[Cell, ...]]:
    """Yield the header, every call, and the cost of erased conversations by day."""
    yield HEAD
    last, written = 0, 0
    calls = filter_calls_within(span).filter(conversation__owner=user).order_by("pk")
    while rows := read_leniently(partial(_read_calls, calls.filter(pk__gt=last))):
        for _pk, sent_at, title, model, purpose, *counts, micros, basis in rows:
            at = sent_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
            cost = format_dollars(micros or 0)
            yield (at, title, model, purpose, 1, *counts, cost, basis or "in doubt")
        last, written = rows[-1][0], written + len(rows)
        if written >= MOST_ROWS:
            yield (f"Cut after {MOST_ROWS:,} calls: ask for fewer days.",)
            return
    for row in list_erased_within(span, owner_id=user.pk):
        sums = row.figures
        yield (
            row.day, "", row.model, "erased", sums.calls, sums.input, sums.output, sums.cache_read,
            sums.cache_write, format_dollars(sums.micros), "sum",
        )  # fmt: skip


def _read_calls(calls: QuerySet[ApiCall]) -> list[tuple[Any, ...]]:
    return list(calls.values_list(*_FIELDS)[:PAGE])
