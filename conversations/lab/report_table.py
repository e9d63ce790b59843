"""Render reports as text: policies side by side in columns, conversations in rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from conversations.lab.accuracy import Accuracy
from conversations.lab.facts import Shares
from conversations.lab.report import Report, compute_spread, compute_tenths

#: Fewest calls of a conversation whose pace is shown.
_LONG = 1_000

Row = tuple[str, Callable[[Report], str]]


def render_totals(reports: Sequence[Report]) -> str:
    """Render one table with a column for each policy."""
    kinds = sorted({kind for report in reports for kind in report.applied})
    rows = [*_TOKENS, *(_build_kind_row(kind) for kind in kinds), *_REST]
    cells = [["", *(report.policy for report in reports)]]
    cells += [[name, *(show(report) for report in reports)] for name, show in rows]
    return _align_cells(cells)


def render_markdown(reports: Iterable[Report]) -> str:
    """Render a Markdown table with a row for each window and policy."""
    lines = [_write_row(["window", "preset", *(name for name, _ in _MARKDOWN)])]
    lines.append(_write_row(["---"] * 2 + ["---:"] * len(_MARKDOWN)))
    for report in reports:
        cells = [f"{report.window:,}", f"`{report.policy}`"]
        lines.append(_write_row([*cells, *(show(report) for _, show in _MARKDOWN)]))
    return "\n".join(lines)


def render_conversations(found: Iterable[tuple[str, Report]]) -> str:
    """Render a line for each conversation and policy."""
    cells = [["conversation", "policy", "calls", "peak", "input", "cost", "changes", "facts"]]
    cells += [
        [
            name,
            report.policy,
            f"{report.calls:,}",
            f"{report.peak:,}",
            f"{report.tokens.input:,}",
            format_dollars(report.total_cost),
            f"{sum(report.applied.values()):,}",
            format_percent(report.facts.in_view, report.facts.needed),
        ]
        for name, report in found
    ]
    return _align_cells(cells, left=2)


def render_pace(found: Iterable[tuple[str, Report]]) -> str:
    """Render for each long conversation whether its later calls take the engine longer."""
    cells = [["engine ms per call", "policy", "window", *(f"{part}0 %" for part in range(1, 11))]]
    cells += [
        [
            name,
            report.policy,
            f"{report.window:,}",
            *(f"{ms:.2f}" for ms in compute_tenths(report.decide)),
        ]
        for name, report in found
        if len(report.decide) >= _LONG
    ]
    return _align_cells(cells, left=2) if len(cells) > 1 else ""


def render_gauge(found: Accuracy | None) -> str:
    """Render how far the estimate is from recorded counts."""
    if found is None:
        return "gauge: no recorded usage"
    return (
        f"gauge against {found.calls:,} recorded calls: error median"
        f" {found.unreported_median / 10:.1f} %, p95 {found.unreported_p95 / 10:.1f} % without a"
        f" report; median {found.reported_median / 10:.1f} %, p95 {found.reported_p95 / 10:.1f} %"
        " with one"
    )


def format_dollars(micros: int) -> str:
    """Format micro-dollars as dollars, rounded to a tenth of a cent."""
    mills = (micros + 500) // 1_000
    return f"${mills // 1_000:,}.{mills % 1_000:03}"


def format_percent(part: int, total: int) -> str:
    return f"{part * 100 / total:.1f} %" if total else "-"


def format_ratio(cost: int, optimum: int) -> str:
    return f"{cost / optimum:.2f}" if optimum else "-"


def _build_kind_row(kind: str) -> Row:
    return f"  {kind}", lambda report: f"{report.applied[kind]:,}"


def _build_fact_rows(name: str, shares: Callable[[Report], Shares]) -> list[Row]:
    return [
        (f"{name}", lambda report: f"{shares(report).needed:,}"),
        ("  in view", lambda r: format_percent(shares(r).in_view, shares(r).needed)),
        ("  or named", lambda r: format_percent(shares(r).named, shares(r).needed)),
        ("  or usably named", lambda r: format_percent(shares(r).usable, shares(r).needed)),
        ("  found of those out of view", lambda r: _format_found(shares(r))),
        ("  lost", lambda r: f"{shares(r).lost:,}"),
    ]


def _format_found(shares: Shares) -> str:
    return format_percent(shares.found - shares.in_view, shares.needed - shares.in_view)


def _format_engine_times(report: Report) -> str:
    times = compute_spread(report.decide)
    return f"{times['mean']:.2f} / {times['p95']:.2f} / {times['max']:.1f}"


def _hide_if_ended(show: Callable[[Report], str]) -> Callable[[Report], str]:
    """Hide totals that lack the calls of turns that ended because the context was full."""
    return lambda report: "-" if report.ended else show(report)


def _build_share(
    shares: Callable[[Report], Shares], part: Callable[[Shares], int]
) -> Callable[[Report], str]:
    return _hide_if_ended(
        lambda report: format_percent(part(shares(report)), shares(report).needed)
    )


def _write_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


_MARKDOWN: list[Row] = [
    ("input tokens", _hide_if_ended(lambda r: f"{r.tokens.input / 1e6:.1f} M")),
    ("cost", _hide_if_ended(lambda r: format_dollars(r.total_cost))),
    ("of it recalls", _hide_if_ended(lambda r: format_dollars(r.recall_cost))),
    ("times the optimum", _hide_if_ended(lambda r: format_ratio(r.total_cost, r.optimum))),
    ("transformations", lambda r: f"{sum(r.applied.values()):,}"),
    ("turns ended", lambda r: f"{r.ended:,}"),
    ("facts in view", _build_share(lambda r: r.facts, lambda s: s.in_view)),
    ("or usable", _build_share(lambda r: r.facts, lambda s: s.usable)),
    ("sole source in view", _build_share(lambda r: r.sole, lambda s: s.in_view)),
    ("or usable", _build_share(lambda r: r.sole, lambda s: s.usable)),
    ("own in view", _build_share(lambda r: r.own, lambda s: s.in_view)),
    ("own lost", _hide_if_ended(lambda r: f"{r.own.lost:,}")),
    ("violations", lambda r: f"{len(r.violations) + r.overruns:,}"),
]
_TOKENS: list[Row] = [
    ("window", lambda r: f"{r.window:,}"),
    ("conversations", lambda r: f"{r.conversations:,}"),
    ("calls", lambda r: f"{r.calls:,}"),
    ("turns ended for room", lambda r: f"{r.ended:,}"),
    ("peak input tokens", lambda r: f"{r.peak:,}"),
    ("input tokens", lambda r: f"{r.tokens.input:,}"),
    ("  fresh", lambda r: f"{r.tokens.fresh:,}"),
    ("  read from cache", lambda r: f"{r.tokens.read:,}"),
    ("  written to cache", lambda r: f"{r.tokens.written:,}"),
    ("output tokens", lambda r: f"{r.tokens.output:,}"),
    ("transformations", lambda r: f"{sum(r.applied.values()):,}"),
]
_REST: list[Row] = [
    ("not applied", lambda r: f"{sum(r.others.values()):,}"),
    ("summary calls", lambda r: f"{r.summary_calls:,}"),
    ("tokens freed", lambda r: f"{r.freed:,}"),
    ("prefix breaks", lambda r: f"{r.prefix_breaks:,}"),
    ("cost", lambda r: format_dollars(r.total_cost)),
    ("  of it summaries", lambda r: format_dollars(r.summary_cost)),
    ("  of it recalls", lambda r: format_dollars(r.recall_cost)),
    ("recalls", lambda r: f"{r.recalls:,}"),
    ("times the optimum", lambda r: format_ratio(r.total_cost, r.optimum)),
    ("cost without caching", lambda r: format_dollars(r.cost_uncached)),
    *_build_fact_rows("facts needed", lambda r: r.facts),
    *_build_fact_rows("sole-source facts", lambda r: r.sole),
    *_build_fact_rows("own doings needed", lambda r: r.own),
    ("rule violations", lambda r: f"{len(r.violations):,}"),
    ("window overruns", lambda r: f"{r.overruns:,}"),
    ("engine ms mean/p95/max", _format_engine_times),
]


def _align_cells(cells: list[list[str]], left: int = 1) -> str:
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        shown = (
            cell.ljust(width) if at < left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join(shown).rstrip())
    return "\n".join(lines)
