"""Sums over calls: their number, the four token counts, the cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum

from conversations.budgets.usage.days import Span
from conversations.models import ApiCall, ApiResult

#: Annotations for calls; `input` is what was neither read from nor written to the cache.
SUMS = {
    "calls": Count("pk"),
    "input": Sum("result__input_tokens"),
    "output": Sum("result__output_tokens"),
    "cache_read": Sum("result__cache_read_tokens"),
    "cache_write": Sum("result__cache_write_tokens"),
    "micros": Sum("result__cost_micros"),
}
#: Condition on calls whose usage had an impossible figure, and complete answers without usage.
FLAGGED = Q(result__cost_basis="clamped") | Q(
    result__cost_basis="estimated", result__status="complete"
)


def is_flagged(result: ApiResult) -> bool:
    """Return whether FLAGGED applies to one result."""
    is_bare = result.cost_basis == "estimated" and result.status == ApiResult.Status.COMPLETE
    return is_bare or result.cost_basis == "clamped"


@dataclass(frozen=True, slots=True)
class Figures:
    """Sums over some calls; the cost is in micro-dollars."""

    calls: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    micros: int = 0

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Figures:
        """Read a database row that was annotated with SUMS."""
        return cls(*(int(row[name] or 0) for name in SUMS))

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            self.calls + other.calls,
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.micros + other.micros,
        )

    def __sub__(self, other: Figures) -> Figures:
        return Figures(
            self.calls - other.calls,
            self.input - other.input,
            self.output - other.output,
            self.cache_read - other.cache_read,
            self.cache_write - other.cache_write,
            self.micros - other.micros,
        )

    @property
    def context(self) -> int:
        """Tokens of the requests, however they were billed."""
        return self.input + self.cache_read + self.cache_write

    @property
    def cached(self) -> int | None:
        """Share of the request tokens read from the cache, in percent; None without requests."""
        return self.cache_read * 100 // self.context if self.context else None


_read = attrgetter(*(each.name for each in fields(Figures)))


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a table: its subject and its figures."""

    name: str
    figures: Figures
    href: str = ""


def add_figures(figures: Iterable[Figures]) -> Figures:
    # Not by `+`, which makes a new sum for each: thousands of people are added up.
    return Figures(*map(sum, zip(*map(_read, figures), strict=True)))


def filter_calls_within(span: Span) -> QuerySet[ApiCall]:
    return ApiCall.objects.filter(sent_at__gte=span.starts_at, sent_at__lt=span.ends_at)
