"""The ledger as rows to read from outside: filtered, in the order in which it was written."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from conversations.models import ApiCall, LedgerEntry

KINDS: tuple[str, ...] = tuple(LedgerEntry.Kind.values)
PURPOSES: tuple[str, ...] = tuple(ApiCall.Purpose.values)
#: Related rows are read by the keys of some entries: joined, SQLite sorts the whole table.
_LINKS = ("window__budget__group", "window__user", "call__cost_centre", "actor")


def filter_entries(
    *, since: datetime | None = None, until: datetime | None = None, **equal: str
) -> QuerySet[LedgerEntry]:
    """Return the entries from a moment to before another, whose fields equal the given values."""
    rows = LedgerEntry.objects.prefetch_related(*_LINKS)
    bounds: dict[str, Any] = {"created_at__gte": since, "created_at__lt": until} | equal
    return rows.filter(**{key: value for key, value in bounds.items() if value})
