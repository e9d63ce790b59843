r"""Delimiters of formulas in Markdown: `$…$`, `$$…$$`, `\(…\)` and `\[…\]`.

A dollar sign is money more often than math: it opens a formula only before a non-space and not
after a letter or digit, and the next one closes it only after a non-space and not before a letter
or digit, so prices and shell variables stay text. A formula on lines of its own is a block: its
lines are not Markdown, and while it is open they are shown as written, so that no half of it
becomes a heading or a list.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from django.utils.html import escape
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from conversations.rendering.latex import MAX_FORMULA, convert_latex
from conversations.rendering.mathml import NotMath
from conversations.rendering.plain import render_plain

_ENDS = {"$$": "$$", "\\[": "\\]", "\\(": "\\)", "$": "$"}
_CLOSING = {
    "$$": re.compile(r"(?<!\\)\$\$"),
    "\\[": re.compile(r"\\\]"),
    "\\(": re.compile(r"\\\)"),
    "$": re.compile(r"(?<!\\)\$"),
}
_IS_CLOSING = re.compile(r"(?<!\s)\$(?![\w$({])")
#: Text in brackets that were merely escaped has none of these.
_INK = re.compile(r"[\\^_=+<>{]|\w[*/-]")
#: An amount and words: "5 and 10", "3 per user, 7".
_AMOUNT = re.compile(r"\d[\d.,]*\s*[a-zA-Z]*\s+[a-zA-Z]{2,}(?:\s|$)")
_AFTER = re.compile(r"[.,;:!?]?\s*")


def add_formulas(md: MarkdownIt) -> None:
    """Add formulas to the parser and its renderer."""
    alt = {"alt": ["paragraph", "reference", "blockquote", "list", "table"]}
    md.block.ruler.before("code", "formula", _parse_block, alt)  # type: ignore[arg-type]
    md.inline.ruler.before("escape", "formula", _parse_inline)
    md.add_render_rule("formula", _render_formula)
    md.add_render_rule("formula_block", _render_formula)
    md.add_render_rule("as_written", _render_source)


def _parse_inline(state: StateInline, silent: bool) -> bool:
    opening = _find_opening(state.src, state.pos)
    if not opening:
        return False
    start = state.pos + len(opening)
    places: dict[tuple[str, str], list[int]] = state.env.setdefault("closings", {})
    if (opening, state.src) not in places:
        found = _CLOSING[opening].finditer(state.src)
        places[opening, state.src] = [match.start() for match in found]
    closings = places[opening, state.src]
    at = bisect_right(closings, start)
    end = closings[at] if at < len(closings) else state.posMax
    if end >= state.posMax or end - start > MAX_FORMULA:
        return False
    if opening == "$" and not _IS_CLOSING.match(state.src, end):
        return False
    source = state.src[start:end]
    if not source.strip() or "`" in source or not _is_formula(opening, source):
        return False
    if not silent:
        token = state.push("formula", "", 0)
        token.content, token.markup = source, opening
    state.pos = end + len(_ENDS[opening])
    return True


def _find_opening(text: str, at: int) -> str:
    if text.startswith(("\\(", "\\["), at):
        return text[at : at + 2]
    if not text.startswith("$", at) or (at and (text[at - 1].isalnum() or text[at - 1] == "$")):
        return ""
    if text.startswith("$$", at):
        return "$$"
    return "$" if at + 1 < len(text) and not text[at + 1].isspace() else ""


def _is_formula(opening: str, source: str) -> bool:
    match opening:
        case "$":
            return not _AMOUNT.match(source)
        case "\\[":
            return bool(_INK.search(source))
        case "\\(":
            return bool(_INK.search(source)) or len(source.split()) == 1
        case _:
            return True


def _parse_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Take the lines of a formula, up to a blank line when it is not closed."""
    at = state.bMarks[start] + state.tShift[start]
    opening = state.src[at : at + 2]
    if opening not in {"$$", "\\["} or state.is_code_block(start):
        return False
    first = state.src[at + 2 : state.eMarks[start]]
    closing = _CLOSING[opening]
    if (found := closing.search(first)) and not _AFTER.fullmatch(first, found.end()):
        return False
    last = start
    while not found and last + 1 < end and not state.isEmpty(last + 1):
        if state.sCount[last + 1] < state.blkIndent:
            break
        last += 1
        line = state.src[state.bMarks[last] : state.eMarks[last]]
        found = closing.search(line)
    lines = state.getLines(start, last + 1, state.blkIndent, False).strip()
    body = closing.search(lines, 2)
    rest = lines[body.end() :] if body else ""
    if silent:
        return True
    is_whole = body is not None and len(lines) <= MAX_FORMULA and _AFTER.fullmatch(rest)
    token = state.push("formula_block" if is_whole else "as_written", "", 0)
    token.content = lines[2 : body.start()] if body and is_whole else lines
    token.markup, token.info, token.map = opening, rest, [start, last + 1]
    state.line = last + 1
    return True


def _render_formula(
    renderer: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any
) -> str:
    """Return a formula as MathML, or its source as code."""
    token = tokens[at]
    is_block, is_display = token.type == "formula_block", token.markup in {"$$", "\\["}
    source = f"{token.markup}{token.content}{_ENDS[token.markup]}{token.info}"
    env["formulas"] -= len(source)
    shown = _to_mathml(token.content.strip(), is_display=is_display) if env["formulas"] >= 0 else ""
    if not shown:
        code = f"<code>{escape(source)}</code>"
        return f"<pre>{code}</pre>\n" if is_block else code
    return f'<div class="formula">{shown}{escape(token.info)}</div>\n' if is_block else shown


def _to_mathml(source: str, *, is_display: bool) -> str:
    try:
        return convert_latex(source, is_display=is_display)
    except NotMath:
        return ""


def _render_source(
    renderer: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any
) -> str:
    return f"{render_plain(tokens[at].content)}\n"
