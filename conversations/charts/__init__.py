"""Charts as shapes: numbers in, frozen shapes out; templates/_charts/chart.html draws them.

Across, a place is a percentage of the drawing's width; down, it is pixels of a fixed height. So a
drawing is as wide as its page while its words keep their size, without a script or a style
attribute. Coordinates are text already: a template would write 12.5 as 12,5 in other languages.
A page that shows one links static/charts.css and includes _charts/patterns.html once.
"""

from __future__ import annotations

from conversations.charts.drawing import draw_areas, draw_bars, draw_lines
from conversations.charts.elements import Chart, Limit, Mark, Series
from conversations.charts.scale import Show, choose_step, format_number

__all__ = [
    "Chart",
    "Limit",
    "Mark",
    "Series",
    "Show",
    "draw_areas",
    "draw_bars",
    "format_number",
    "draw_lines",
    "choose_step",
]
