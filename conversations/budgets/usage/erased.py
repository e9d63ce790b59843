"""The cost of erased conversations by day, model and cost centre, from their erasure rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from conversations.budgets.usage.days import Span
from conversations.budgets.usage.sums import Figures
from conversations.models import Erasure


@dataclass(frozen=True, slots=True)
class Erased:
    owner: int
    day: str
    model: str
    figures: Figures
    #: The key of the cost centre; None: none.
    centre: int | None = None


def list_erased_within(span: Span, owner_id: int | None = None) -> Iterator[Erased]:
    """Yield the rows within a span, for one owner or for all."""
    # A call was sent between the start of its conversation and its erasure.
    rows = Erasure.objects.filter(begun_at__lt=span.ends_at, erased_at__gte=span.starts_at)
    if owner_id is not None:
        rows = rows.filter(owner_id=owner_id)
    first, last = span.first.isoformat(), span.last.isoformat()
    for owner, usage in rows.values_list("owner_id", "usage"):
        for row in usage:
            if first <= row["day"] <= last:
                centre = row.get("cost_centre")
                yield Erased(owner, row["day"], row["model"], _read_figures(row), centre)


def _read_figures(row: dict[str, int]) -> Figures:
    return Figures(
        row["calls"],
        row["input_tokens"],
        row["output_tokens"],
        row["cache_read_tokens"],
        row["cache_write_tokens"],
        row["cost_micros"],
    )
