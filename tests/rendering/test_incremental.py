"""A running answer: its pieces are the whole, at a cost that is linear in its length."""

from __future__ import annotations

import random
import re
from collections import Counter
from functools import partialmethod

import pytest

from conversations import rendering
from conversations.rendering import Incremental, markdown, render_markdown
from conversations.rendering.code import HighlightTime, highlight_code
from tests.rendering.test_markdown import CORPUS


@pytest.mark.parametrize("source", CORPUS)
def test_the_pieces_of_an_answer_are_the_whole_answer(source: str) -> None:
    for seed in range(12):
        chance = random.Random(seed)
        incremental, closed, tail, at = Incremental(), "", "", 0
        while at < len(source):
            step = chance.randint(1, 9)
            more, tail = incremental.feed(source[at : at + step])
            closed, at = closed + more, at + step
        assert closed + tail == render_markdown(source)


#: What may stand before, within and behind words, and changes what they are.
SIGNS = (
    *("\n", "\n\n", "  ", "  \n", "\t", "    ", "\\", "**", "*", "_", "__", "`", "``"),
    *("```py\n", "~~~\n", "[", "]", "(", ")", "](", "[foo]: ", "'", '"', "$", "$$", "\\("),
    *("\\)", "\\[", "\\]", "- ", "> ", "# ", "1", "12", "2.", "1) ", "- [ ] ", "|", "|---|\n"),
    *("a | b\n", "--- | ---\n", "===", "---", "http://", "www.", "x.com", "@", "mailto:"),
    *("&amp", "&", "<b>", ";", ":", ".", ",", "!", "’", "~~"),
)  # fmt: skip
WORDS = (" word", " foo", "bar", " 12", "s", " a b", " so, she", " end.", " don't", "é", "日本語")
#: What may be a code block's.
CODE = (
    "x = '<&>'",
    "\n",
    "\n\n",
    "\n    ",
    "  ",
    "\t",
    "- 1",
    "> a",
    '"',
    "\n```",
    "\n~~~\n",
    "é",
    "# b",
)


def test_words_that_are_put_into_a_line_are_what_parsing_it_again_gives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: list[str] = []
    ways = {name: getattr(Incremental, name) for name in ("_goes_on", "_begin_paragraph")}

    def keep(incremental: Incremental, text: str, *, name: str) -> bool:
        is_taken: bool = ways[name](incremental, text)
        taken.extend([f"{name} of code" if incremental._is_code else name] * is_taken)
        return is_taken

    for seed in range(2_000):
        chance = random.Random(seed)
        of = (SIGNS, WORDS) if seed % 4 else (CODE, WORDS)
        kinds = chance.choices(of, k=chance.randint(2, 25))
        pieces = ["".join(chance.choices(kind, k=chance.randint(1, 3))) for kind in kinds]
        pieces = ["```c\n", *pieces] if seed % 4 == 0 else pieces
        shown = []
        for is_fast in (True, False):
            for name in ways:
                way = partialmethod(keep, name=name) if is_fast else lambda *_: False
                monkeypatch.setattr(Incremental, name, way)
            incremental, closed, found = Incremental(), "", []
            for piece in pieces:
                more, tail = incremental.feed(piece)
                closed += more
                found.append(closed + tail)
            shown.append(found)
        assert shown[0] == shown[1], pieces
    assert min(Counter(taken).values()) > 200
    assert len(set(taken)) == 3


def test_what_is_kept_of_a_streamed_answer_is_what_rendering_it_gives() -> None:
    kept = 0
    for seed in range(1_000):
        chance = random.Random(seed)
        kinds = chance.choices((SIGNS, WORDS, CODE), k=chance.randint(2, 25))
        pieces = ["".join(chance.choices(kind, k=chance.randint(1, 3))) for kind in kinds]
        incremental, source = Incremental(), "".join(pieces)
        for piece in pieces:
            incremental.feed(piece)
        html = incremental.find_whole(source)
        assert html in (None, rendering._render(source)), pieces
        kept += html is not None
    assert kept > 300


@pytest.mark.parametrize(
    "source",
    [
        "[a]: https://example.org\n\nLink [a]",
        "Held\n\n- ",
        "```py\nopen = 1\n",
        "- an item that makes a list too long for one part\n" * 20,
        "word *x* " * 2_000,
        ("[" * 900 + "\n\n") * 8,
        "word " * 2_500,
    ],
)
def test_what_the_whole_may_change_is_not_kept(source: str) -> None:
    incremental = Incremental()
    for at in range(0, len(source), 400):
        incremental.feed(source[at : at + 400])
    assert incremental.find_whole(source) is None


def test_what_lacks_a_piece_is_not_kept() -> None:
    incremental = Incremental()
    assert incremental.find_whole("None of it") is None
    incremental.feed("Some words")
    assert incremental.find_whole("Some words and more") is None
    assert incremental.find_whole("Some words") == "<p>Some words</p>\n"


def test_what_was_shown_without_colours_is_not_kept() -> None:
    source = "```py\nx = 1\n```\n\nDone"
    for is_coloured in (True, False):
        incremental = Incremental()
        incremental.is_coloured = is_coloured
        incremental.feed(source)
        assert (incremental.find_whole(source) is not None) == is_coloured


def test_a_streamed_answer_is_not_rendered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "Some **new** words\n\n- of one\n- or two\n\n" + "Done. " * 3
    incremental = Incremental()
    for at in range(0, len(source), 9):
        incremental.feed(source[at : at + 9])
    rendering._render_cached.cache_clear()
    rendering.keep_streamed(source, incremental)
    with monkeypatch.context() as patched:
        patched.setattr(rendering, "convert_markdown", lambda _: pytest.fail("rendered again"))
        shown = [render_markdown(source), render_markdown(source)]
    assert shown == [rendering._render(source)] * 2
    for _ in range(2 * rendering.MOST_STREAMED):
        incremental.feed("Done. ")
        source += "Done. "
        rendering.keep_streamed(source, incremental)
    assert len(rendering._streamed) <= rendering.MOST_STREAMED


def test_words_of_a_sentence_are_not_parsed_again() -> None:
    incremental = Incremental()
    incremental.feed("- An item of **some** words")
    before = incremental.parsed
    words = (", which", " don", "’t end", " soon: they", " are ", "well-known", ". And", " on")
    for piece in words:
        _, tail = incremental.feed(piece)
    assert incremental.parsed == before
    shown = "words, which don’t end soon: they are well-known. And on"
    assert tail.endswith(f"<strong>some</strong> {shown}</li>\n</ul>\n")
    assert incremental.feed(" **bold**")[1].endswith("on <strong>bold</strong></li>\n</ul>\n")
    assert incremental.parsed > before


def test_an_open_code_block_is_not_parsed_again() -> None:
    incremental = Incremental()
    incremental.feed("```py\ndef f():")
    before = incremental.parsed
    for piece in ("\n    if a < b:", "\n\n", '\treturn "c" & d', "\n- e"):
        _, tail = incremental.feed(piece)
    assert incremental.parsed == before
    shown = 'def f():\n    if a &lt; b:\n\n\treturn "c" &amp; d\n- e</code></pre></div>\n'
    assert tail.endswith(f'<code class="language-py">{shown}')
    assert incremental.feed("\n```\n")[1] == render_markdown(incremental._text)
    # The rest of a long one, whose beginning is closed.
    closed, _ = incremental.feed("\n```py\n" + "x = 1\n" * 80)
    before = incremental.parsed
    assert closed.count('class="language-py"') == 2
    assert incremental.feed("y = 2")[1].endswith("x = 1\ny = 2</code></pre></div>\n")
    assert incremental.parsed == before


def test_what_a_blank_line_ends_is_closed_and_not_parsed_again() -> None:
    incremental = Incremental()
    assert incremental.feed("# Some\n\nwords of") == ("<h1>Some</h1>\n", "<p>words of</p>\n")
    before = incremental.parsed
    assert incremental.feed(" two.\n\nParts") == ("<p>words of two.</p>\n", "<p>Parts</p>\n")
    assert incremental.parsed == before
    assert incremental.feed("\n\n> a\n\n- b") == (
        '<p>Parts</p>\n<blockquote dir="auto">\n<p>a</p>\n</blockquote>\n',
        '<ul dir="auto">\n<li>b</li>\n</ul>\n',
    )


def _fed(source: str, step: int = 30, *, is_coloured: bool = True) -> tuple[str, Incremental]:
    incremental, closed, tail = Incremental(), "", ""
    incremental.is_coloured = is_coloured
    for at in range(0, len(source), step):
        more, tail = incremental.feed(source[at : at + step])
        closed += more
    return closed + tail, incremental


def test_a_long_code_block_is_closed_in_slices_that_join() -> None:
    source = "Here:\n\n```text\n" + "".join(f"line {n} <&>\n" for n in range(400)) + "```\n\nDone"
    html, fed = _fed(source, 4)
    assert (html.count('<div class="code further">') > 2, len(fed._coloured) < 200) == (True, True)
    joined = re.sub(
        r'</code></pre></div>\n<div class="code further"><pre><code class="language-text">',
        "",
        html,
    )
    assert joined == render_markdown(source)


def test_a_short_code_block_is_coloured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    coloured: list[str] = []

    def keep(code: str, language: str, allowance: HighlightTime) -> str:
        coloured.extend([code] * (language == "python"))
        return highlight_code(code, language, allowance)

    monkeypatch.setattr(markdown, "highlight_code", keep)
    incremental, closed, tail = Incremental(), "", ""
    pieces = ("```python\nx = ", "1\n```", "\n\n", "| a ", "| b |\n", "|---|", "---|\n")
    for piece in pieces:
        more, tail = incremental.feed(piece)
        closed += more
    assert closed + tail == render_markdown("".join(pieces))
    # The second is the whole answer's.
    assert coloured == ["x = 1\n"] * 2


@pytest.mark.parametrize("lines", [3, 100, 1_000])
def test_where_time_is_short_code_is_shown_without_colours(
    lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only where this says so: a busy machine is short of it, too.
    monkeypatch.setattr(HighlightTime, "__init__", lambda self, _size: setattr(self, "left", 60.0))
    source = "Here:\n\n```python\n" + "x = 'value'  # why\n" * lines + "```\n\nDone"
    hasty, calm = _fed(source, is_coloured=False)[0], _fed(source)[0]
    hasty = hasty.replace('<span class="lang">python</span>', "python")
    assert "<span" not in hasty
    assert calm.count('<span class="c">') == lines
    assert re.sub(r"</?span[^>]*>", "", calm) == hasty
    # What is coloured on its way is not plain at the end.
    assert render_markdown(source).count('<span class="c">') == lines


@pytest.mark.parametrize("gap", ["", "\n"])
@pytest.mark.parametrize("sign", ["-", "{n}."])
def test_a_long_list_is_closed_in_parts_that_join(sign: str, gap: str) -> None:
    sign = f"{sign} item {{n}} with some words to make it longer\n{gap}"
    source = "".join(sign.replace("{n}", str(n)) for n in range(1, 90))
    html, _ = _fed(source)
    assert html.count(' class="further"') > 10
    assert re.sub(r'</[uo]l>\n<[uo]l[^>]* class="further">\n', "", html) == render_markdown(source)


def test_a_long_table_is_closed_in_parts_that_join() -> None:
    rows = "".join(f"| Town {n} | {n} |\n" for n in range(200))
    source = f"A table:\n\n| a | b |\n|---|--:|\n{rows}\nDone"
    html, incremental = _fed(source)
    assert html.count('<div class="table further" dir="auto">') > 10
    assert html.count("<thead>") == 1
    seam = r'</tbody>\n</table>\n</div><div class="table further" dir="auto"><table>\n<tbody>\n'
    assert re.sub(seam, "", html) == render_markdown(source)
    assert incremental.parsed < 12 * len(source)


@pytest.mark.parametrize("step", [1, 30, *range(250, 900, 13)])
def test_what_follows_a_long_table_is_never_a_row_of_it(step: int) -> None:
    rows = "".join(f"| Town {n} | {n} |\n" for n in range(40))
    incremental = Incremental()
    source = f"| a | b |\n|---|--:|\n{rows}\nThat was the table."
    shown = [incremental.feed(source[at : at + step]) for at in range(0, len(source), step)]
    assert not any("<td>That" in html for pair in shown for html in pair)
    assert shown[-1][1].endswith("<p>That was the table.</p>\n")


def test_signs_before_any_word_are_not_shown_as_what_they_will_not_be() -> None:
    incremental = Incremental()
    shown = [
        incremental.feed(piece)[1] for piece in ("- one\n", "- ", "*", "*two", "**\n\n", "1", ".")
    ]
    assert [html.count("<li>") for html in shown] == [1, 1, 1, 2, 2, 2, 2]
    assert all(html.count("<ul") == 1 for html in shown)
    assert "two" in shown[3]


SHAPES = {
    "prose": "Some **bold** words and `code` in a paragraph of usual length for a chat.\n\n",
    "one paragraph": "word ",
    "one line of code": "```\n" + "x",
    "code": "x = 'value'  # a line of code\n",
    "list": "- an item of a long list\n",
    "table": "| cell | another |\n",
    "brackets": "![",
    "quote": "> quoted words\n",
    "formulas": "The sum $\\sum_i x_i^2$ is $y$, so\n\n$$\nx = \\frac{1}{2}\n$$\n\n",
    "one open formula": "a_1 + b_2 = \n",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_cost_of_an_answer_is_linear_in_its_length(shape: str) -> None:
    openings = {
        "code": "```python\n",
        "table": "| a | b |\n|---|---|\n",
        "one open formula": "$$\n",
    }
    opening = openings.get(shape, "")

    def cost(size: int) -> float:
        return _fed(opening + SHAPES[shape] * (size // len(SHAPES[shape])))[1].parsed / size

    small, middle, large = cost(6_000), cost(24_000), cost(48_000)
    assert max(small, middle, large) < 22
    assert large < middle * 1.4 + 1
