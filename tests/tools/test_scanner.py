"""The HTML scanner: its tokens, its linear time, and any soup of tags."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.html.scanner import End, Start, Text, scan_html
from tools.html.to_compact_text import html_to_compact_text
from tools.html.to_markdown import html_to_markdown

UNITS = [
    *("<!--", "<a ", "<a>", "</a ", "<![CDATA[", "<a b='", '<a b="', "<a b=", "<", "&", "&#", "<?"),
    *(
        "<table>",
        "<table><td>",
        "<li>",
        "<ul>",
        "<pre>",
        "<script>",
        "<title>",
        "<a href=x>",
        "<svg>",
    ),
    *("<div hidden>", "<h1>", "x ", "<td>|", "&#11111111", "<img alt=x>", "<p>x", "<br>", "a\n"),
]


@pytest.mark.parametrize(
    ("markup", "found"),
    [
        ("a<b>c</b>", [Text("a"), Start("b", {}), Text("c"), End("b")]),
        ("<A HREF='x>y' href=z>", [Start("a", {"href": "x>y"})]),
        ('<a href = "x&amp;y" class=z>', [Start("a", {"href": "x&y"})]),
        ("<br/><p hidden>", [Start("br", {}), Start("p", {"hidden": ""})]),
        ("<a href=x/y =odd alt>", [Start("a", {"href": "x/y", "alt": ""})]),
        ('<a href="open', [Start("a", {"href": '"open'})]),
        ("<a href='", [Start("a", {"href": "'"})]),
        ("1 < 2 <3 &lt; &eacute;&#233;", [Text("1 < 2 <3 < éé")]),
        ("a<!-- <b> -->c<!-->d<!-- open", [Text("a"), Text("c"), Text("d")]),
        ("<!doctype html><?x?></ >a", [Text("a")]),
        ("<script>if (a<b) '</b>'</SCRIPT >x", [Start("script", {}), End("script"), Text("x")]),
        ("<style>open", [Start("style", {})]),
        ("<title>a<b>&amp;</title>", [Start("title", {}), Text("a<b>&"), End("title")]),
        (
            "<svg/>a<math />b",
            [Start("svg", {}), End("svg"), Text("a"), Start("math", {}), End("math"), Text("b")],
        ),
        ("<a", [Start("a", {})]),
        ("</a", [End("a")]),
        ("&#" + "1" * 5_000 + ";&#xffffffffff;&#x41;", [Text("\ufffd\ufffdA")]),
    ],
)
def test_a_page_is_told_as_it_stands(markup: str, found: list[object]) -> None:
    assert list(scan_html(markup)) == found


@pytest.mark.parametrize("unit", UNITS)
def test_no_input_takes_more_than_linear_time(unit: str) -> None:
    markup = unit * (100_000 // len(unit))
    started = time.thread_time()
    html_to_markdown(markup, "https://example.com/")
    html_to_compact_text(markup)
    assert time.thread_time() - started < 6  # a quadratic reader takes half a minute


PIECES = st.lists(
    st.sampled_from([*UNITS, "</a>", "</table>", "</ul>", "</pre>", "<tr>", "</div>", ">"])
)


@given(PIECES.map("".join))
def test_any_soup_of_tags_is_readable(markup: str) -> None:
    text = html_to_markdown(markup, "https://example.com/")
    assert "\x00" not in text
    assert text == text.strip("\n")
    lines = html_to_compact_text(markup).split("\n")
    assert lines == [""] or all(line == " ".join(line.split()) != "" for line in lines)


@given(st.text())
def test_text_without_tags_keeps_its_words(text: str) -> None:
    bare = text.replace("<", "").replace("&", "")
    assert html_to_markdown(bare, "https://example.com/").split() == bare.split()
