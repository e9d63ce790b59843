"""Web pages as Markdown, and their charsets."""

from __future__ import annotations

import pytest

from tools.html.to_markdown import html_to_markdown
from tools.http.charset import decode_bytes

JOB = """<!doctype html><html><head><title>Senior .NET
 developer &amp; lead</title><style>p{}</style><script>track()</script></head>
<body><nav><ul><li><a href="/">Home</a></li></ul></nav>
<h1>Senior .NET</h1><p>Fully <b>remote</b>,<br>starts   now. <a href="/jobs/2?x=1#top">Apply
here</a>.</p>
<ul><li>C#<li>Azure <ul><li>Functions</li></ul></li></ul>
<ol><li>First</li><li>Second</li></ol>
<table><caption>Pay</caption><tr><th>Level<th>Rate</tr>
<tr><td>Senior</td><td>500 | 700</td></tr></table>
<pre>  keep
    this</pre>
<template>no</template><svg><title>no</title></svg><div hidden>no <div>no</div></div>
<div style="display: none">no</div><p>End</p></body></html>"""

READ = """Title: Senior .NET developer & lead

# Senior .NET

Fully remote,
starts now. [Apply here](https://example.com/jobs/2?x=1#top).

- C#
- Azure
  - Functions
1. First
2. Second

Pay

| Level | Rate |
| --- | --- |
| Senior | 500 \\| 700 |

```
  keep
    this
```

End"""


def read(markup: str) -> str:
    return html_to_markdown(markup, "https://example.com/a/b")


def test_a_page_keeps_its_headings_lists_links_and_tables() -> None:
    assert read(JOB) == READ


@pytest.mark.parametrize(
    ("href", "target"),
    [
        ("c", "https://example.com/a/c"),
        ("//other.example/x", "https://other.example/x"),
        ("mailto:a@example.com", "mailto:a@example.com"),
        ("/x y(1)", "https://example.com/x%20y%281%29"),
        ("#top", None),
        ("", None),
        ("javascript:alert(1)", None),
        (" JavaScript:alert(1)", None),
        ("data:text/html,x", None),
        ("http://[bad", None),
        ("/" + "x" * 3_000, None),
    ],
)
def test_a_link_is_absolute_or_only_its_words(href: str, target: str | None) -> None:
    expected = f"go [there]({target}) now" if target else "go there now"
    assert read(f'go <a href="{href}">there</a> now') == expected


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("", ""),
        ("<a href=x></a><a href=y> </a>z", "z"),
        ("<a href=/x><h3>Job</h3><p>Pay</p></a>", "### [Job](https://example.com/x)\n\nPay"),
        (
            "<a href=/x>one<a href=/y>two",
            "[one](https://example.com/x)[two](https://example.com/y)",
        ),
        ("<base href='https://cdn.example/'><a href=x>y</a>", "[y](https://cdn.example/x)"),
        ("<base href='javascript:x'><a href=/x>y</a>", "[y](https://example.com/x)"),
        ("a<img src=x alt=' big  logo '>b<img src=y>", "a (image: big logo) b"),
        ("<li>alone</ul>", "- alone"),
        ("<ul><li><p>one</p><p>two</p></ul>", "- one\n\ntwo"),
        ("<h2></h2><p>x", "x"),
        ("<p hidden>one<p>two", "one\n\ntwo"),
        ("<nav>open <nav>in</nav> x", ""),
        ("<nav>a<nav>b</nav>c</nav>d", "d"),
        ("<title></title>x<title>y", "Title: y\n\nx"),
        ("<title>a</title><title>b</title>c", "Title: a\n\nbc"),
        (
            "<meta http-equiv=Refresh content='0; url=/next'>",
            "This page asks to continue at https://example.com/next",
        ),
        ("<meta http-equiv=refresh content=5><meta name=x>y", "y"),
        ("<meta http-equiv=refresh content='0;url=javascript:x'>y", "y"),
        ("x</a></td></table></pre></tr>y", "x\n\ny"),
        ("<pre>a<br>b<p>c<a href=x>d</a></pre>", "```\na\nb\ncd\n```"),
        ("<pre>```</pre>", "````\n```\n````"),
        ("<pre>open", "```\nopen\n```"),
        ("<hr>a<hr>b", "a\n\nb"),
    ],
)
def test_small_pieces(markup: str, text: str) -> None:
    assert read(markup) == text


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("<table><tr><td>a<td>b<tr><td>c", "| a | b |\n| --- | --- |\n| c |"),
        ("<table><td>a<td>b<td></table>", "| a | b |  |\n| --- | --- | --- |"),
        ("<table><tr><td>only<tr><td><tr><td>column</table>", "only\ncolumn"),
        ("<table><tr><td></table>x", "x"),
        ("<td>no<td>table", "no\n\ntable"),
        (
            "<table><tr><td><p>a</p><p>b<br>c<li>d<h3>e</h3><td>f",
            "| a b c d e | f |\n| --- | --- |",
        ),
        (
            "<table><tr><td><a href=/x>a</a><td><pre>b</pre>",
            "| [a](https://example.com/x) | b |\n| --- | --- |",
        ),
        ("<table>stray<tr><td>a<td>b</table>end", "stray\n\n| a | b |\n| --- | --- |\n\nend"),
        ("<pre>x<table><tr><td>a<td>b", "```\nx\n```\n\n| a | b |\n| --- | --- |"),
        ("<table></table>x", "x"),
    ],
)
def test_tables(table: str, text: str) -> None:
    assert read(table) == text


def test_a_table_around_a_table_is_layout() -> None:
    inner = "<table><tr><td>a<td>b</table>"
    markup = f"<table><tr><td>top<td>right</tr><tr><td>before{inner}after<td>side</table>"
    assert read(markup) == "top right\n\nbefore\n\n| a | b |\n| --- | --- |\n\nafter\n\nside"


def test_tags_are_bounded_and_it_is_said() -> None:
    note = "[the page goes on; only its first 300,000 tags and texts are read]"
    assert read("<i>" * 300_000 + "unreached") == note
    assert read("reached" + "<i>" * 300_000) == f"reached\n\n{note}"
    assert read("reached" + "<i>" * 299_999) == "reached"


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("é".encode(), "", "é"),
        ("é".encode("latin-1"), "text/html; charset=ISO-8859-1", "é"),
        (b"\x80", "text/plain; charset=us-ascii", "€"),
        ("привет".encode("koi8-r"), 'text/html; charset="koi8-r"', "привет"),
        ("日本".encode("shift_jis"), "text/html;charset=Shift_JIS", "日本"),
        (b"<meta charset='windows-1251'>\xcf", "text/html", "<meta charset='windows-1251'>П"),
        (b"\xef\xbb\xbfx", "text/html; charset=koi8-r", "x"),
        ("é".encode("utf-16"), "text/html", "é"),
        (b"\xfe\xff\x00x", "text/html", "x"),
        (b"\xff", "text/html; charset=utf-8", "\ufffd"),
        (b"\\u0041", "text/plain; charset=unicode_escape", "\\u0041"),
        (b"xn--x", "text/plain; charset=punycode", "xn--x"),
        (b"+AGE-", "text/plain; charset=utf-7", "+AGE-"),
        (b"x", "text/plain; charset=no-such-charset", "x"),
        (b"x", "text/plain; charset=zlib", "x"),
    ],
)
def test_the_charset_is_one_that_pages_are_written_in(
    body: bytes, content_type: str, text: str
) -> None:
    assert decode_bytes(body, content_type) == text
