"""The bars of charts and the rows of their tables as HTML.

A chart of 90 days has hundreds of them: a loop of the template would cost most of the time of its
page.
"""

from __future__ import annotations

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from conversations.charts.elements import Bar, Chart, Row

register = template.Library()

_BAR = (
    '<rect class="chart-bar" x="{}%" y="{}" width="{}%" height="{}" fill="url(#chart-{})">'
    "<title>{}</title></rect>"
)
_LINK = '<a href="{}">{}</a>'
_ROW = '<tr><th scope="row">{}</th>{}</tr>'


@register.filter
def write_bars(chart: Chart) -> SafeString:
    return format_html_join("", "{}", ([_draw_bar(bar)] for bar in chart.bars))


@register.filter
def write_rows(chart: Chart) -> SafeString:
    return format_html_join("", "{}", ([_write_row(row)] for row in chart.rows))


def _draw_bar(bar: Bar) -> SafeString:
    drawn = format_html(_BAR, bar.x, bar.y, bar.width, bar.height, bar.kind, bar.text)
    return format_html(_LINK, bar.href, drawn) if bar.href else drawn


def _write_row(row: Row) -> SafeString:
    label = format_html(_LINK, row.href, row.label) if row.href else row.label
    return format_html(_ROW, label, format_html_join("", "<td>{}</td>", zip(row.cells)))
