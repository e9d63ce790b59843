"""Charts: shapes that add up, round numbers at the ticks, the same in every language."""

from __future__ import annotations

import re

import pytest
from django.template.loader import render_to_string
from django.utils import translation
from hypothesis import given
from hypothesis import strategies as st

from conversations.charts import Limit, Mark, Series, choose_step, draw_areas, draw_bars, draw_lines
from conversations.charts.elements import HEIGHT
from tests.web.tags import elements

NUMBERS = st.lists(st.integers(0, 10**12), min_size=1, max_size=40)


def drawn(chart: object, **more: object) -> str:
    return render_to_string("_charts/chart.html", {"chart": chart, "title": "Money", **more})


@given(st.integers(0, 10**15))
def test_a_step_is_round_and_the_highest_number_is_reached(highest: int) -> None:
    step = choose_step(highest)
    assert str(step).rstrip("0") in ("1", "2", "5")
    assert step * 4 >= highest
    assert step == 1 or choose_step(highest - 1) <= step


@given(NUMBERS, NUMBERS)
def test_stacked_bars_stand_on_each_other_within_the_drawing(a: list[int], b: list[int]) -> None:
    size = min(len(a), len(b))
    series = [Series("a", tuple(a[:size])), Series("b", tuple(b[:size]))]
    chart = draw_bars([str(at) for at in range(size)], series)
    ends: dict[str, float] = {}
    for bar in chart.bars:
        top, height = float(bar.y), float(bar.height)
        assert -0.01 <= top <= HEIGHT
        assert top + height == pytest.approx(ends.get(bar.x, HEIGHT), abs=0.011)
        ends[bar.x] = top
        assert 0 <= float(bar.x) <= float(bar.x) + float(bar.width) <= 100.01


def test_a_line_is_broken_where_nothing_is_known_and_a_lone_point_is_a_dot() -> None:
    chart = draw_lines(
        ["a", "b", "c", "d"], [Series("x", (1, None, 3, 4)), Series("y", (None,) * 4)]
    )
    (path,) = chart.paths
    assert path.line == "M125 120h0M625 40h0L875 0"
    assert [row.cells for row in chart.rows][1] == ("–", "–")


def test_layers_share_their_edges() -> None:
    first, second = draw_areas(["a", "b"], [Series("x", (1, 2)), Series("y", (3, 1))]).paths
    assert first.fill == "M250 120h0L750 80L750 160h0L250 160Z"
    assert second.fill == "M250 0h0L750 40L750 80h0L250 120Z"
    assert len(draw_areas(["a"], [Series("x", (0,))]).paths) == 0


def test_a_chart_is_its_table_too_with_marks_limits_and_links() -> None:
    chart = draw_bars(
        ["1 Nov", "2 Nov"],
        [Series("Replies", (5, None), kind=3)],
        links=["/a/", "/b/"],
        marks=[Mark(1, "reduced", "/r/")],
        limits=[Limit(10, "the limit")],
    )
    page = drawn(chart)
    for shown in (
        "<title>1 Nov, Replies: 5</title>", 'href="/a/"', 'href="/r/"', "the limit", "reduced",
        'fill="url(#chart-3)"', 'role="group"', '<a href="/b/">2 Nov</a>',
        "<td>–</td>",
    ):  # fmt: skip
        assert shown in page
    assert not [each for each in elements(page) if "style" in dict(each[1])]


def test_the_words_of_a_limit_stand_above_all_that_is_drawn_on_a_plate_of_their_own() -> None:
    series = [Series(f"s{at}", (5,)) for at in range(6)]
    page = drawn(draw_bars(["1"], series, marks=[Mark(0, "cut")], limits=[Limit(3, "the limit")]))
    places = [page.rindex(f'class="chart-{part}"') for part in ("bar", "mark", "limit")]
    assert places == sorted(places)
    used = set(re.findall(r"url\(#([\w-]+)\)", page))
    assert used == {"chart-plate", *(f"chart-{kind}" for kind in range(6))}
    defined = re.findall(r'\bid="([\w-]+)"', render_to_string("_charts/patterns.html"))
    assert sorted(defined) == sorted(used)


def test_names_and_links_of_bars_and_rows_are_written_as_text() -> None:
    name, link = "<b>&'\"", '/a/?b="><script>'
    bars = drawn(draw_bars([name], [Series(name, (5,))], links=[link]))
    tags = {tag for tag, _attributes in elements(bars)}
    assert not {"b", "script"} & tags
    assert [dict(of)["href"] for tag, of in elements(bars) if tag == "a"] == [link, link]


def test_an_empty_chart_says_so() -> None:
    for chart in (
        draw_bars([], []),
        draw_lines(["a"], [Series("x", (None,))]),
        draw_bars(["a"], []),
    ):
        assert chart.is_empty
        assert "Nothing in this time." in drawn(chart)


@pytest.mark.parametrize("language", ["de", "ar", "en"])
def test_coordinates_are_written_alike_in_every_language(language: str) -> None:
    chart = draw_bars([str(at) for at in range(7)], [Series("x", (1, 2, 3, 4, 5, 6, 7))])
    with translation.override(language):
        page = drawn(chart)
    numbers = re.findall(r' (?:x|y|x1|x2|y1|y2|width|height)="([^"]*)"', page)
    assert numbers
    assert all(re.fullmatch(r"-?\d+(\.\d+)?%?", number) for number in numbers)


def test_words_below_are_few_and_the_last_stays_inside() -> None:
    chart = draw_bars([f"day {at}" for at in range(300)], [Series("x", (1,) * 300)])
    assert len(chart.words) <= 6
    assert chart.words[0].text == "day 0"
    assert {word.anchor for word in draw_bars(["a"] * 5, []).words} == {"middle"}
    assert draw_bars([str(at) for at in range(20)], []).words[-1].anchor in ("middle", "end")
    assert float(chart.bars[1].x) - float(chart.bars[0].x) == pytest.approx(
        float(chart.bars[0].width), abs=0.01
    )
