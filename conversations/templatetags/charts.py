"""The bars of charts and the rows of their tables as HTML.

A chart of 90 days has hundreds of them: a loop of the template would cost most of the time of its
page, and `format_html`, which looks at the kind of each value, half of it. Places and sizes are
numbers; every text is escaped where it is written.
"""

from __future__ import annotations

from html import escape

from django import template
from django.utils.safestring import SafeString, mark_safe

from conversations.charts.elements import Bar, Chart, Row

register = template.Library()


@register.filter
def write_bars(chart: Chart) -> SafeString:
    return mark_safe("".join(map(_draw_bar, chart.bars)))  # noqa: S308 - escaped below


@register.filter
def write_rows(chart: Chart) -> SafeString:
    return mark_safe("".join(map(_write_row, chart.rows)))  # noqa: S308 - escaped below


def _draw_bar(bar: Bar) -> str:
    drawn = (
        f'<rect class="chart-bar" x="{bar.x}%" y="{bar.y}" width="{bar.width}%" '
        f'height="{bar.height}" fill="url(#chart-{bar.kind})">'
        f"<title>{escape(bar.text)}</title></rect>"
    )
    return _link(bar.href, drawn)


def _write_row(row: Row) -> str:
    cells = "".join(f"<td>{escape(cell)}</td>" for cell in row.cells)
    return f'<tr><th scope="row">{_link(row.href, escape(row.label))}</th>{cells}</tr>'


def _link(href: str, text: str) -> str:
    return f'<a href="{escape(href)}">{text}</a>' if href else text
