"""Formulas: what is math and what is money, what leaves as MathML, what is shown as written."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import partial
from xml.etree import ElementTree as ET

import pytest
from django.utils.html import escape

from conversations import rendering
from conversations.rendering import (
    Incremental,
    clean_html,
    formulas,
    latex,
    mathml,
    render_markdown,
)
from conversations.rendering.mathml import NotMath
from tests.support.call_counts import counted
from tests.web.tags import acting, attributes, elements, names

TEXT = (
    "It costs $5 and $10.", "US$5, $5-$10, $5/month (or $50/year)", "between $5 and 10$ a year",
    "echo $HOME/bin:$PATH", "print '$a','$b' and ${c}:${d}", "AU$B$C", "`$x$` and ``$$y$$``",
    "an open $x and no more", r"\$x\$", "$ x $", r"\[1\] and \[sic\]", r"\(see above\)",
    "    $$\n    code\n    $$", "```\n$$\nx\n$$\n```", "$$", "$$$", "$", "x$", "a $`b`$ c",
)  # fmt: skip


@pytest.mark.parametrize("source", TEXT)
def test_money_variables_and_code_stay_text(source: str) -> None:
    html = render_markdown(source)
    assert "<math" not in html
    for word in source.replace("`", " ").replace("\\", " ").split():
        assert word.strip("()[]'") in html.replace("&#x27;", "'")


FORMULAS = {
    "$E=mc^2$": "<math><mi>E</mi><mo>=</mo><mi>m</mi><msup><mi>c</mi><mn>2</mn></msup></math>",
    r"\(a_1\)": "<math><msub><mi>a</mi><mn>1</mn></msub></math>",
    r"so $x$, \(y\)": "<mi>x</mi></math>, <math><mi>y</mi></math>",
    "$$x$$": '<div class="formula"><math display="block"><mi>x</mi></math></div>',
    "\\[\nx\n\\]": '<div class="formula"><math display="block"><mi>x</mi></math></div>',
    "we get $$x$$ here": '<p>we get <math display="block"><mi>x</mi></math> here</p>',
    "Thus:\n$$\nx\n$$\nand": '<p>Thus:</p>\n<div class="formula">',
    "1. a\n   $$\n   x\n   $$\n2. b": "<li>b</li>",
    "> $$x$$.": "<mi>x</mi></math>.</div>",
    "| $x$ |\n|---|\n| $y$ |": "<td><math><mi>y</mi></math></td>",
    "*$x_i$ and $y_j$*": "<em><math><msub>",
    r"$\mathbf{A1}$": "<mi>𝐀</mi><mn>𝟏</mn>",
    r"$\mathbb{RQ}\mathfrak{H}\mathcal{B}$": "<mi>ℝ</mi><mi>ℚ</mi>",
    r"$$\lim_{x\to0}$$": '<munder><mo lspace="0.17em" rspace="0" movablelimits="true">lim</mo>',
    r"$\sum_i^n$": "<munderover><mo>∑</mo><mi>i</mi><mi>n</mi></munderover>",
    r"$\begin{pmatrix}a\end{pmatrix}^T$": "<msup><mrow><mo>(</mo><mtable>",
    r"$\sin x$": '<mi>sin</mi><mspace width="0.17em"></mspace><mi>x</mi>',
    "$$\\begin{aligned}a&=b\\\\&=c\\end{aligned}$$": '<mtable displaystyle="true" class="aligned">',
    "$$\\begin{gather}a\\\\b\\end{gather}$$": "</mtr><mtr>",
    "$$a\\\\b$$": '<mtable displaystyle="true"><mtr><mtd><mi>a</mi></mtd></mtr><mtr>',
    r"$\begin{array}{c|c}a&b\\\hline c&d\end{array}$": '<mtd class="bar under">',
    r"$\boxed{x}\cancel{y}\overline{AB}\hat z$": '<mrow class="boxed"><mrow><mi>x</mi>',
    r"$\text{a < b} & c$": None,
    r"$\foo{x}$": None,
    "$a_b_c$": None,
    r"$\left( x$": None,
    r"$$\href{https://evil.example}{x}$$": None,
    r"$\def\a{xx}\a$": None,
}  # fmt: skip


@pytest.mark.parametrize("source", FORMULAS)
def test_a_formula_is_shown_or_its_source_is(source: str) -> None:
    html, wanted = render_markdown(source), FORMULAS[source]
    if wanted is None:
        assert "<math" not in html
        assert "<code>$" in html
        assert clean_html(escape(source.strip("$"))) in html
    else:
        assert wanted in html


DRESSED = (
    r"\text{<img src=x onerror=alert(1)>}", r"\text{&#x3c;script&#x3e;alert(1)&#x3c;/script&#x3e;}",
    r"\color{red}{x}", r"\textcolor{#fff}{x}", r"\colorbox{black}{x}", r"\hspace{-900em}x",
    r"\kern-500pt x", r"\raise 900em{x}", r"\rlap{over all}", r"\Huge{x}", r"\rule{900em}{900em}",
    r"\smash{x}", r"\mathbin{</math><img src=x>}", r"\mbox{$<svg onload=x>$}",
    r"\operatorname{a b}",
    r"\genfrac(){900em}0ab", r"\begin{array}{c}\text{<style>}\end{array}", "a < b > c & d",
)  # fmt: skip


@pytest.mark.parametrize("source", DRESSED)
def test_a_formula_cannot_dress_up_as_the_page(source: str) -> None:
    html = render_markdown(f"${source}$ and\n\n$$\n{source}\n$$")
    assert not acting(html)
    own = {*mathml.ELEMENTS, "p", "pre", "code", "div"}
    assert names(html) <= own
    for tag, attrs in elements(html):
        for name, value in attrs.items():
            if name == "class":
                known = mathml.CLASSES.get(tag, {"formula"})
                assert set((value or "").split()) <= known
            else:
                assert value in mathml.ATTRIBUTES[tag][name]


MUTATIONS = (
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=a()'>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "<svg></p><style><a id='</style><img src=1 onerror=alert(1)>'>",
    "<math><annotation-xml encoding='text/html'><style><img src=x onerror=alert(1)></style>",
    "<math><semantics><annotation-xml encoding='application/xhtml+xml'><script>alert(1)</script>",
    "<math><maction actiontype='statusline#//evil' xlink:href='javascript:alert(1)'>x</maction>",
    "<math href='javascript:alert(1)'><mi href='//evil' xlink:href='data:,x'>x</mi></math>",
    "<math><mi><style></mi><img src=x onerror=alert(1)></style></math>",
    "<math><ms><malignmark><style><img src=x onerror=alert(1)></style>",
    "<math><mo style='position:fixed' mathbackground='url(//e)' class='boxed banner' id=x>+</mo>",
    "<math><mtext><a href='javascript:alert(1)'>x</a><p id=chat-log>y</p></mtext></math>",
    "<math><mspace width='900em' mathbackground=red /><mi mathsize='90em' dir=rtl>x</mi></math>",
    "<math><mfrac><title><![CDATA[</title><img src=x onerror=alert(1)>]]></mfrac></math>",
    "<math><mtext><noscript><p title='</noscript><img src=x onerror=alert(1)>'></mtext></math>",
)


@pytest.mark.parametrize("attack", MUTATIONS)
def test_what_the_second_wall_lets_through_is_stable_and_inert(attack: str) -> None:
    once = clean_html(attack)
    assert clean_html(once) == once
    assert not acting(once)
    assert attributes(once) <= {"href", "rel", "target", "class"}
    assert not {"mglyph", "malignmark", "annotation-xml", "style", "svg", "maction"} & names(once)


def test_every_formula_passes_the_second_wall_as_it_is() -> None:
    chance = random.Random(7)
    parts = [*DRESSED, *(source.strip("$") for source in FORMULAS), *r"{}_^&'x1\$%#[]|~"]
    shown = 0
    for _ in range(600):
        source = "".join(chance.choice(parts) for _ in range(chance.randint(1, 6)))
        try:
            found = latex.convert_latex(source, is_display=chance.random() < 0.5)
        except NotMath:
            continue
        shown += 1
        ET.fromstring(found)
        same = {"&nbsp;": "\xa0", "&quot;": '"', "&#x27;": "'", "&#39;": "'"}
        cleaned = clean_html(found)
        for name, character in same.items():
            cleaned, found = cleaned.replace(name, character), found.replace(name, character)
        assert cleaned == found
    assert shown > 50


GROWING = (
    "Thus:\n\n$$\n\\begin{aligned} a &= b \\\\\n=\n- x\n# y\n\\end{aligned}\n$$\n\nnext $x_1$ end",
    "A\n\\[\nx\n=\n5\n\\]\n- b\n- $c$\n",
    "$$\nnever closed\n=\n- b",
    "$$a$$ goes on\n\nand $$b$$",
)


@pytest.mark.parametrize("source", GROWING)
def test_a_formula_on_its_way_stays_text_until_it_is_closed(source: str) -> None:
    for seed in range(12):
        chance = random.Random(seed)
        incremental, closed, tail, at = Incremental(), "", "", 0
        while at < len(source):
            step = chance.randint(1, 9)
            more, tail = incremental.feed(source[at : at + step])
            assert "<h" not in closed + more + tail
            closed, at = closed + more, at + step
        assert closed + tail == render_markdown(source)


HARD = {
    "braces": "$" + "{" * 1_900 + "x" + "}" * 1_900 + "$ ",
    "roots": "$" + r"\sqrt" * 700 + "x$ ",
    "fractions": "$" + r"\frac{1}{" * 300 + "x" + "}" * 300 + "$ ",
    "fences": "$" + r"\left(" * 300 + r"\right)" * 300 + "$ ",
    "open dollars": "$a ",
    "open brackets": r"\( x ",
    "open lines": "$$\na\n\n",
    "cells": r"$\begin{matrix}" + "&" * 3_900 + r"\end{matrix}$ ",
    "rows": r"$\begin{matrix}" + r"a\\" * 1_290 + r"\end{matrix}$ ",
    "names": r"$\operatorname{" + " " * 3_900 + "$ ",
    "texts": "$" + r"\text{" * 600 + "$ ",
    "macros": r"$\def\a{\a\a}\a$ ",
    "small ones": r"$\frac{1}{2}$ ",
    "primes": "$x" + "'" * 3_900 + "$ ",
}


class Led:
    """A pattern that counts the characters it is led over."""

    total = 0

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern = pattern

    def search(self, text: str, at: int = 0) -> re.Match[str] | None:
        found = self.pattern.search(text, at)
        Led.total += (found.end() if found else len(text)) - at
        return found

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        Led.total += len(text)
        return self.pattern.finditer(text)


@pytest.mark.parametrize("name", HARD)
def test_no_formula_takes_long_or_much(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    closing = {opening: Led(pattern) for opening, pattern in formulas._CLOSING.items()}
    monkeypatch.setattr(formulas, "_CLOSING", closing)
    for size in (5_000, 20_000, 100_000):
        source = (HARD[name] * (size // len(HARD[name]) + 1))[:size]
        latex.convert_latex.cache_clear()
        monkeypatch.setattr(Led, "total", 0)
        calls, html = counted(partial(rendering._render, source))
        # Twice what the dearest takes; whoever begins anew at every place takes thousands.
        assert calls < 90 * size
        assert Led.total < 4 * size
        assert len(html) < 20 * size
        assert not acting(html)


def test_a_formula_that_is_too_long_is_shown_as_written() -> None:
    source = "x+" * 2_001
    assert render_markdown(f"${source}$").startswith("<p>$x+x+")
    assert render_markdown(f"$$\n{source}\n$$").startswith('<p class="plain">$$\nx+x+')
    with pytest.raises(NotMath):
        latex.convert_latex(source, is_display=False)
