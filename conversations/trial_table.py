"""The reports of a trial as rows for people: a name, and a cell for each policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from conversations.lab.report import Report
from conversations.templatetags.agentweb import dollars


@dataclass(frozen=True, slots=True)
class Row:
    """`is_part` marks a share of the row above; `best` are the indexes of the cheapest cells."""

    name: str
    cells: tuple[str, ...]
    is_part: bool = False
    best: tuple[int, ...] = ()


def rows(reports: Sequence[Report]) -> list[Row]:
    """Put the reports side by side."""
    if not reports:
        return []
    kinds = sorted({kind for report in reports for kind in report.applied})
    costs = [report.total_cost for report in reports]
    cheapest = tuple(at for at, cost in enumerate(costs) if cost == min(costs) < max(costs))
    return [
        _row(_("Calls"), reports, lambda r: f"{r.calls:,}"),
        _row(_("Turns ended for want of room"), reports, lambda r: f"{r.ended:,}"),
        _row(_("Largest request, tokens"), reports, lambda r: f"{r.peak:,}"),
        _row(_("Input tokens"), reports, lambda r: f"{r.tokens.input:,}"),
        _row(_("read from the cache"), reports, lambda r: f"{r.tokens.read:,}", is_part=True),
        _row(_("written to the cache"), reports, lambda r: f"{r.tokens.written:,}", is_part=True),
        Row(_("Cost"), tuple(map(dollars, costs)), best=cheapest),
        _row(_("of it summaries"), reports, lambda r: dollars(r.summary_cost), is_part=True),
        _row(_("Cost without a cache"), reports, lambda r: dollars(r.cost_uncached)),
        _row(_("Changes of the context"), reports, lambda r: f"{sum(r.applied.values()):,}"),
        *(_row(kind, reports, _applied(kind), is_part=True) for kind in kinds),
        _row(_("Tokens freed"), reports, lambda r: f"{r.freed:,}"),
        _row(_("Rules of the API broken"), reports, lambda r: f"{len(r.violations):,}"),
    ]


def _row(
    name: str, reports: Sequence[Report], show: Callable[[Report], str], *, is_part: bool = False
) -> Row:
    return Row(name, tuple(map(show, reports)), is_part)


def _applied(kind: str) -> Callable[[Report], str]:
    return lambda report: f"{report.applied[kind]:,}"
