"""Bare addresses: the published examples of GitHub's autolink extension, and what people write."""

from __future__ import annotations

import pytest

from conversations.rendering import link_addresses, render_markdown
from tests.support.call_counts import counted
from tests.web.tags import elements

#: The examples of the extension's specification, by what is linked in each.
PUBLISHED = {
    "www.commonmark.org": ["http://www.commonmark.org"],
    "Visit www.commonmark.org/help for more information.": ["http://www.commonmark.org/help"],
    "Visit www.commonmark.org.": ["http://www.commonmark.org"],
    "Visit www.commonmark.org/a.b.": ["http://www.commonmark.org/a.b"],
    "www.google.com/search?q=Markup+(business)": [
        "http://www.google.com/search?q=Markup+(business)"
    ],
    "www.google.com/search?q=Markup+(business)))": [
        "http://www.google.com/search?q=Markup+(business)"
    ],
    "(www.google.com/search?q=Markup+(business))": [
        "http://www.google.com/search?q=Markup+(business)"
    ],
    "(www.google.com/search?q=Markup+(business)": [
        "http://www.google.com/search?q=Markup+(business)"
    ],
    "www.google.com/search?q=(business))+ok": ["http://www.google.com/search?q=(business))+ok"],
    "www.google.com/search?q=commonmark&hl=en": ["http://www.google.com/search?q=commonmark&hl=en"],
    "www.google.com/search?q=commonmark&hl;": ["http://www.google.com/search?q=commonmark"],
    "www.commonmark.org/he<lp": ["http://www.commonmark.org/he"],
    "http://commonmark.org": ["http://commonmark.org"],
    "(Visit https://encrypted.google.com/search?q=Markup+(business))": [
        "https://encrypted.google.com/search?q=Markup+(business)"
    ],
    "foo@bar.baz": ["mailto:foo@bar.baz"],
    "hello@mail+xyz.example isn't valid, but hello+xyz@mail.example is.": [
        "mailto:hello+xyz@mail.example"
    ],
    "a.b-c_d@a.b": ["mailto:a.b-c_d@a.b"],
    "a.b-c_d@a.b.": ["mailto:a.b-c_d@a.b"],
    "a.b-c_d@a.b-": [],
    "a.b-c_d@a.b_": [],
    "mailto:foo@bar.baz": ["mailto:foo@bar.baz"],
    "mailto:a.b-c_d@a.b-": [],
}
WRITTEN = {
    "„https://example.org/x“ and “https://example.org/y”": [
        "https://example.org/x",
        "https://example.org/y",
    ],
    'URL:https://example.org, "https://example.org/q?a=1&b=2"': [
        "https://example.org",
        "https://example.org/q?a=1&b=2",
    ],
    "→https://example.org/ 见https://example.org/页。": [
        "https://example.org/",
        "https://example.org/%E9%A1%B5",
    ],
    "http://localhost:8000/x [https://example.org]": [
        "http://localhost:8000/x",
        "https://example.org",
    ],
    "README.md, main.py, node.js, 3.14, a@b and @ann": [],
    "https://google.com@evil.example/ https://google.com:80@evil.example/": [],
    "postgres://user:pw@db.example.org/x ssh://git@example.org ftp://example.org //example.org": [],
    "javascript://example.org/%0aalert(1) xhttps://example.org https:// www.": [],
    "http://a_b.example http://a.b_c.example": [],
}


def _hrefs(html: str) -> list[str]:
    return [attributes["href"] or "" for tag, attributes in elements(html) if tag == "a"]


@pytest.mark.parametrize("source", PUBLISHED | WRITTEN)
def test_bare_addresses_are_links(source: str) -> None:
    expected = (PUBLISHED | WRITTEN)[source]
    assert _hrefs(render_markdown(source)) == expected
    # Only the parser writes other characters than ASCII as an address does.
    assert len(_hrefs(link_addresses(source))) == len(expected)


@pytest.mark.parametrize(
    ("source", "html"),
    [
        ("**https://example.org/a**", '<strong><a href="https://example.org/a"'),
        ("*https://example.org* b", '<em><a href="https://example.org"'),
        ("https://example.org/__init__/x", '<a href="https://example.org/__init__/x"'),
        ("https://example.org/a_b_c", '<a href="https://example.org/a_b_c"'),
        ("HTTPS://example.org/?a=1&amp;b=2", 'href="HTTPS://example.org/?a=1&amp;b=2"'),
        ("| a |\n|---|\n| https://example.org/x |", '<td><a href="https://example.org/x"'),
        ("~~ann@example.org~~", '<s><a href="mailto:ann@example.org"'),
    ],
)
def test_addresses_stand_inside_other_marks(source: str, html: str) -> None:
    assert html in render_markdown(source)


def test_a_link_and_code_keep_their_own_address() -> None:
    source = "[see https://a.example x@a.example](https://b.example) `https://c.example`"
    assert _hrefs(render_markdown(source)) == ["https://b.example"]


def test_an_address_of_another_alphabet_shows_the_host_that_is_asked() -> None:
    assert '<span class="host">xn--e1aa6ab.example</span>' in render_markdown(
        "https://ерер.example"
    )


@pytest.mark.parametrize(
    "url",
    ["https://ерер.example", "https://example\u2024org/", "https://0x7f.1/", "https://1.2.3/"],
)
def test_tool_output_has_no_link_whose_host_is_not_clear(url: str) -> None:
    assert link_addresses(f"see {url} there") == f"see {url} there"


def test_tool_output_is_escaped_around_its_links() -> None:
    html = link_addresses('{"url": "https://example.org/a?b=1&c=2", "x": "<b>\\nhttps://e.org\\n"}')
    assert _hrefs(html) == ["https://example.org/a?b=1&c=2", "https://e.org"]
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert link_addresses("a < b") == "a &lt; b"


@pytest.mark.parametrize(
    "piece", ["www.", "http:", "https://", "a://", "a@", "http://a.b@", "a@a.a.a- ", "(http://a_b"]
)
def test_looking_for_addresses_is_linear(piece: str) -> None:
    short, long = piece * (4_000 // len(piece)), piece * (16_000 // len(piece))
    few, _ = counted(lambda: render_markdown(short))
    many, _ = counted(lambda: render_markdown(long))
    assert many < 5 * few
