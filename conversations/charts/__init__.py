"""Charts as shapes: numbers in, frozen shapes out.

templates/_charts/chart.html draws them; the bars and the rows of the table, of which there are
many, are written by templatetags/charts.py. Horizontal coordinates are percentages of the drawing's
width, vertical ones pixels of a fixed height. So a drawing fills the width of its page while its
texts keep their size, without a script or a style attribute. Coordinates are strings, because a
template would write 12.5 as 12,5 in some languages. A page that shows a chart links
static/charts.css and includes _charts/patterns.html once.
"""

from __future__ import annotations

from conversations.charts.drawing import draw_areas, draw_bars, draw_lines
from conversations.charts.elements import Chart, Limit, Mark, Series
from conversations.charts.scale import Show, choose_step

__all__ = [
    "Chart",
    "Limit",
    "Mark",
    "Series",
    "Show",
    "choose_step",
    "draw_areas",
    "draw_bars",
    "draw_lines",
]
