"""Medians and percentiles of the newest rows of a span.

They are computed in Python: SQLite has no percentiles, and both databases should agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from conversations.agent.usage import START
from conversations.budgets.usage.days import Span
from conversations.budgets.usage.savings import filter_changes_within, filter_shrunk
from conversations.budgets.usage.sums import filter_calls_within
from conversations.lab.accuracy import find_percentile

#: The most rows that a percentile is computed from.
SAMPLE = 5_000


@dataclass(frozen=True, slots=True)
class Spread:
    """The median and the 95th percentile of `size` values; None without values."""

    size: int
    median: int | None
    high: int | None

    @property
    def is_cut(self) -> bool:
        return self.size >= SAMPLE


def measure_estimate_errors(span: Span) -> Spread:
    """Return by how much estimates miss the reported request size, in tenths of a percent.

    Calls in which the API ran tools of its own are left out: their figures are sums over rounds.
    """
    counts = ("input_tokens", "cache_read_tokens", "cache_write_tokens")
    rows = (
        filter_calls_within(span)
        .filter(purpose="reply", result__status="complete", result__input_tokens__isnull=False)
        .exclude(result__usage__contains=f'"{START}"')
    )
    found = rows.order_by("-sent_at", "-pk").values_list(
        "estimated_tokens", *(f"result__{n}" for n in counts)
    )
    errors = []
    for estimated, read, cached, written in found[:SAMPLE]:
        if reported := read + (cached or 0) + (written or 0):
            errors.append(abs(estimated - reported) * 1000 // reported)
    return compute_spread(errors)


def measure_tokens_saved(span: Span) -> Spread:
    """Return how many tokens one transformation frees."""
    rows = filter_shrunk(filter_changes_within(span)).order_by("-created_at", "-pk")
    counts = rows.values_list("tokens_before", "tokens_after")[:SAMPLE]
    return compute_spread([before - after for before, after in counts])


def compute_spread(values: Sequence[int]) -> Spread:
    """Return median and 95th percentile by nearest rank."""
    ranked = sorted(values)
    if not ranked:
        return Spread(0, None, None)
    return Spread(len(ranked), find_percentile(ranked, 50), find_percentile(ranked, 95))
