"""Bar, line and area charts, all with the same ticks, labels, marks and limits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from conversations.charts.elements import Bar, Chart, Legend, Limit, Mark, Path, Row, Series
from conversations.charts.scale import (
    Show,
    choose_labels,
    format_coordinate,
    format_number,
    list_ticks,
    place_limits,
    place_marks,
    scale_value,
    write_path,
)
from conversations.charts.scale import choose_top as top_of

#: Percent of a column that its bar fills; with more than DENSE columns bars touch.
FILLED, DENSE = 72, 120


def draw_bars(
    labels: Sequence[str],
    series: Sequence[Series],
    *,
    show: Show = format_number,
    links: Sequence[str] = (),
    marks: Sequence[Mark] = (),
    limits: Sequence[Limit] = (),
) -> Chart:
    """Draw a column for each label; several series are stacked, the first at the base."""
    stacked = _stack_values(series)
    top, ground = _draw_frame(labels, series, show, stacked[-1:], marks, limits)
    step = 100 / max(len(labels), 1)
    share = 1.0 if len(labels) > DENSE else FILLED / 100
    found = []
    for each, kind, ends in zip(series, _list_colours(series), stacked, strict=True):
        for at, (value, end) in enumerate(zip(each.values, ends, strict=True)):
            if not value:
                continue
            upper, lower = scale_value(end, top), scale_value(end - value, top)
            found.append(
                Bar(
                    x=format_coordinate(step * (at + (1 - share) / 2)),
                    y=format_coordinate(upper),
                    width=format_coordinate(step * share),
                    height=format_coordinate(lower - upper),
                    kind=kind,
                    text=": ".join((", ".join(filter(None, (labels[at], each.name))), show(value))),
                    href=links[at] if links else "",
                )
            )
    rows = zip(ground.rows, links, strict=True) if links else ()
    linked = tuple(replace(row, href=href) for row, href in rows)
    return replace(ground, bars=tuple(found), rows=linked or ground.rows)


def draw_lines(
    labels: Sequence[str],
    series: Sequence[Series],
    *,
    show: Show = format_number,
    marks: Sequence[Mark] = (),
    limits: Sequence[Limit] = (),
) -> Chart:
    """Draw a line for each series; it is interrupted where no value is known."""
    values = [each.values for each in series]
    top, ground = _draw_frame(labels, series, show, values, marks, limits)
    paths = tuple(
        Path(write_path(each.values, top), kind, each.name)
        for each, kind in zip(series, _list_colours(series), strict=True)
        if any(value is not None for value in each.values)
    )
    return replace(ground, paths=paths)


def draw_areas(
    labels: Sequence[str],
    series: Sequence[Series],
    *,
    show: Show = format_number,
    marks: Sequence[Mark] = (),
    limits: Sequence[Limit] = (),
) -> Chart:
    """Draw stacked areas, the first at the base; an unknown value counts as 0."""
    stacked = _stack_values(series)
    top, ground = _draw_frame(labels, series, show, stacked[-1:], marks, limits)
    paths, below = [], [0] * len(labels)
    for each, kind, ends in zip(series, _list_colours(series), stacked, strict=True):
        if any(each.values):
            upper, lower = write_path(ends, top), write_path(below[::-1], top, is_backwards=True)
            paths.append(Path(upper, kind, each.name, fill=f"{upper}L{lower[1:]}Z"))
        below = ends
    return replace(ground, paths=tuple(paths))


def _draw_frame(
    labels: Sequence[str],
    series: Sequence[Series],
    show: Show,
    drawn: Iterable[Sequence[int | None]],
    marks: Sequence[Mark],
    limits: Sequence[Limit],
) -> tuple[int, Chart]:
    """Return the number at the top line, and the parts that all kinds of charts share."""
    top = top_of([*(value for values in drawn for value in values), *(at.value for at in limits)])
    rows = (
        Row(label, tuple(_format_cell(each.values[at], show) for each in series))
        for at, label in enumerate(labels)
    )
    return top, Chart(
        legend=tuple(
            Legend(kind, each.name)
            for kind, each in zip(_list_colours(series), series, strict=True)
        ),
        rows=tuple(rows),
        ticks=list_ticks(top, show),
        words=choose_labels(labels),
        marks=place_marks(marks, len(labels)),
        limits=place_limits(limits, top),
    )


def _stack_values(series: Sequence[Series]) -> list[list[int]]:
    """Return for each series where its columns end when it is stacked on those before it."""
    ends: list[list[int]] = []
    for each in series:
        below = ends[-1] if ends else [0] * len(each.values)
        ends.append([base + (value or 0) for base, value in zip(below, each.values, strict=True)])
    return ends


def _list_colours(series: Sequence[Series]) -> list[int]:
    return [at if each.kind is None else each.kind for at, each in enumerate(series)]


def _format_cell(value: int | None, show: Show) -> str:
    return "–" if value is None else show(value)
