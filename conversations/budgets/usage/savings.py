"""What transformations have saved, and how often a text of the model was no use for one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from conversations.budgets.usage.days import Span
from conversations.context.steps.kinds import ASKS_MODEL, GROWING
from conversations.models import ApiCall, Transformation

_SHRUNK = Q(outcome="applied") & ~Q(kind__in=GROWING)
#: For `annotate` over transformations.
CHANGES = {
    "changes": Count("pk", filter=Q(outcome="applied")),
    "saved": Sum(F("tokens_before") - F("tokens_after"), filter=_SHRUNK),
    "asked": Count("pk", filter=Q(kind__in=ASKS_MODEL)),
    "refused": Count("pk", filter=Q(kind__in=ASKS_MODEL, outcome__in=("rejected", "vetoed"))),
}


@dataclass(frozen=True, slots=True)
class Changes:
    """Applied ones and the tokens they freed; summaries asked for, and those of no use."""

    applied: int = 0
    saved: int = 0
    asked: int = 0
    refused: int = 0

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Changes:
        """Read a row of the database that has CHANGES."""
        return cls(*(int(row[name] or 0) for name in CHANGES))

    def __add__(self, other: Changes) -> Changes:
        return Changes(
            self.applied + other.applied,
            self.saved + other.saved,
            self.asked + other.asked,
            self.refused + other.refused,
        )

    @property
    def refused_share(self) -> int | None:
        """In percent; None where no summary was asked for."""
        return self.refused * 100 // self.asked if self.asked else None


def changes_within(span: Span) -> QuerySet[Transformation]:
    return Transformation.objects.filter(
        created_at__gte=span.starts_at, created_at__lt=span.ends_at
    )


def shrunk(rows: QuerySet[Transformation]) -> QuerySet[Transformation]:
    return rows.filter(_SHRUNK)


def model_of() -> Coalesce:
    """Name the model of a transformation: its turn's first call; else its conversation's."""
    calls = ApiCall.objects.filter(turn=OuterRef("turn"), purpose="reply").order_by("number")
    return Coalesce(Subquery(calls.values("model")[:1]), "conversation__model")
