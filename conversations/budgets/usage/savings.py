"""What transformations have saved, and how often the model's summaries were rejected."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from conversations.budgets.usage.days import Span, UtcDay
from conversations.context.steps.kinds import ASKS_MODEL, GROWING
from conversations.models import ApiCall, Conversation, Transformation

_SHRUNK = Q(outcome="applied") & ~Q(kind__in=GROWING)
#: Annotations for transformations.
CHANGES = {
    "changes": Count("pk", filter=Q(outcome="applied")),
    "saved": Sum(F("tokens_before") - F("tokens_after"), filter=_SHRUNK),
    "requested": Count("pk", filter=Q(kind__in=ASKS_MODEL)),
    "rejected": Count("pk", filter=Q(kind__in=ASKS_MODEL, outcome__in=("rejected", "vetoed"))),
}


@dataclass(frozen=True, slots=True)
class Changes:
    """Applied transformations and the tokens they freed; summaries requested and rejected."""

    applied: int = 0
    saved: int = 0
    requested: int = 0
    rejected: int = 0

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Changes:
        """Read a database row that was annotated with CHANGES."""
        return cls(*(int(row[name] or 0) for name in CHANGES))

    def __add__(self, other: Changes) -> Changes:
        return Changes(
            self.applied + other.applied,
            self.saved + other.saved,
            self.requested + other.requested,
            self.rejected + other.rejected,
        )

    @property
    def rejected_share(self) -> int | None:
        """Rejected summaries in percent; None if none was requested."""
        return self.rejected * 100 // self.requested if self.requested else None


_read = attrgetter(*(each.name for each in fields(Changes)))


def add_changes(changes: Iterable[Changes]) -> Changes:
    return Changes(*map(sum, zip(*map(_read, changes), strict=True)))


def filter_changes_within(span: Span) -> QuerySet[Transformation]:
    return Transformation.objects.filter(
        created_at__gte=span.starts_at, created_at__lt=span.ends_at
    )


def filter_shrunk(rows: QuerySet[Transformation]) -> QuerySet[Transformation]:
    return rows.filter(_SHRUNK)


def build_model_expression() -> Coalesce:
    """Return the model of a transformation's turn, else of its conversation, as SQL."""
    replies = _find_replies().order_by("number")
    # Not by a join, which even those who count the rows would have to make.
    chosen = Conversation.objects.filter(pk=OuterRef("conversation"))
    return Coalesce(Subquery(replies.values("model")[:1]), Subquery(chosen.values("model")))


def filter_unanswered(rows: QuerySet[Transformation]) -> QuerySet[Transformation]:
    """Return those that count for the model of their conversation, as in forks and imports."""
    return rows.exclude(Exists(_find_replies()))


def _find_replies() -> QuerySet[ApiCall]:
    return ApiCall.objects.filter(turn=OuterRef("turn"), purpose="reply")


@dataclass(frozen=True, slots=True)
class Step:
    """The transformations of one kind with one outcome, on one day."""

    day: str
    kind: str
    outcome: str
    count: int
    changes: Changes


def sum_changes(span: Span) -> tuple[tuple[Step, ...], tuple[tuple[str, Changes], ...]]:
    """Return the steps within a span, and what was changed in the context of each model."""
    rows = filter_changes_within(span).annotate(day=UtcDay("created_at"))
    sums = rows.annotate(of=build_model_expression()).values("day", "kind", "outcome", "of")
    counts: Counter[tuple[str, str, str]] = Counter()
    steps: defaultdict[tuple[str, str, str], Changes] = defaultdict(Changes)
    models: defaultdict[str, Changes] = defaultdict(Changes)
    for row in sums.annotate(count=Count("pk"), **CHANGES).order_by():
        key, changes = (str(row["day"]), row["kind"], row["outcome"]), Changes.of(row)
        counts[key] += row["count"]
        steps[key] += changes
        models[row["of"]] += changes
    found = tuple(Step(*key, counts[key], steps[key]) for key in sorted(steps))
    return found, tuple(sorted(models.items()))
