"""Charts of the cost of calls: a column for each day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import date
from functools import lru_cache

from django.utils import translation
from django.utils.dateformat import format as dated
from django.utils.formats import get_format
from django.utils.translation import gettext as _

from conversations.budgets.usage.days import Span
from conversations.budgets.usage.groups import Group
from conversations.charts import Chart, Series, draw_bars
from conversations.rendering.numbers import dollars, tokens, write_number

#: Most series in a chart; the smallest ones are summed as the last.
MOST_SERIES = 5

Shares = Iterable[tuple[str, str, int]]


def draw_money_by_day(span: Span, groups: Iterable[Group], name: Callable[[Group], str]) -> Chart:
    """Draw each day's cost, split by the name of a group."""
    shares = ((group.day, name(group), group.figures.micros) for group in groups)
    return draw_columns(span, shares, show=format_cents)


def draw_tokens_by_day(span: Span, groups: Iterable[Group]) -> Chart:
    """Draw each day's tokens, split by how they were billed."""
    rows = list(groups)
    kinds = {
        _("From the cache"): [group.figures.cache_read for group in rows],
        _("Written to the cache"): [group.figures.cache_write for group in rows],
        _("Other input"): [group.figures.input for group in rows],
        _("Output"): [group.figures.output for group in rows],
    }
    series = []
    for name, counts in kinds.items():
        found: Counter[str] = Counter()
        for group, count in zip(rows, counts, strict=True):
            found[group.day] += count
        series.append(Series(name, tuple(found[day] for day in span.days)))
    return draw_bars(label_days(span), series, show=tokens)


def draw_columns(span: Span, shares: Shares, *, show: Callable[[int], str]) -> Chart:
    """Draw (day, name, amount) as stacked columns; the largest names are at the base."""
    cells: Counter[tuple[str, str]] = Counter()
    sums: Counter[str] = Counter()
    for day, name, amount in shares:
        cells[day, name] += amount
        sums[name] += amount
    names = [name for name, _sum in sums.most_common()]
    alone = names if len(names) <= MOST_SERIES + 1 else names[:MOST_SERIES]
    series = [Series(name, tuple(cells[day, name] for day in span.days)) for name in alone]
    if rest := names[len(alone) :]:
        values = (sum(cells[day, name] for name in rest) for day in span.days)
        series.append(Series(_("Others"), tuple(values)))
    return draw_bars(label_days(span), series, show=show)


def format_cents(micros: int) -> str:
    """Write dollars with two decimals where cents are exact, so that axis labels look alike."""
    if micros % 10_000:
        return dollars(micros)
    return f"${write_number(f'{micros // 1_000_000}.{micros // 10_000 % 100:02}')}"


def label_days(span: Span) -> tuple[str, ...]:
    return _label_days(span.days, translation.get_language())


@lru_cache(maxsize=32)
def _label_days(days: tuple[str, ...], _language: str | None) -> tuple[str, ...]:
    """Write the days with short months, once for all charts of a page."""
    form = get_format("MONTH_DAY_FORMAT").replace("F", "M")
    return tuple(dated(date.fromisoformat(day), form) for day in days)


def draw_turns_by_day(span: Span, turns: Iterable[tuple[str, str, int]]) -> Chart:
    """Draw each day's turns, split by how they ended."""
    named = {
        "done": _("Done"),
        "cancelled": _("Stopped by people"),
        "interrupted": _("Interrupted"),
        "failed": _("Failed"),
    }
    live = _("Under way")
    cells: Counter[tuple[str, str]] = Counter()
    for day, state, count in turns:
        cells[day, named.get(state, live)] += count
    kinds = {named["done"]: 0, named["cancelled"]: 4, named["interrupted"]: 1, named["failed"]: 5}
    series = [
        Series(name, tuple(cells[day, name] for day in span.days), kind)
        for name, kind in (kinds | {live: 2}).items()
    ]
    shown = [one for one in series if any(one.values)]
    return draw_bars(label_days(span), shown, show=write_number)
