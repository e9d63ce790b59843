"""Reductions as rows to read from outside: figures only, in the order in which they were made."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from conversations.models import Transformation

OUTCOMES: tuple[str, ...] = tuple(Transformation.Outcome.values)
#: What people and models wrote, and what quotes it.
_CONTENT = ("edits", "policy", "reason", "decision", "note")
_LINKS = ("conversation__owner", "turn", "actor", "summary_call__result")


def filter_reductions(
    *, since: datetime | None = None, until: datetime | None = None, **equal: str
) -> QuerySet[Transformation]:
    """Return those from a moment to before another, whose fields equal the given values."""
    rows = Transformation.objects.defer(*_CONTENT).prefetch_related(*_LINKS)
    bounds: dict[str, Any] = {"created_at__gte": since, "created_at__lt": until} | equal
    return rows.filter(**{key: value for key, value in bounds.items() if value})
