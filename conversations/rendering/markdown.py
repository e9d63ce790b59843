"""The parser: CommonMark with tables and strikethrough, without HTML and images, with limits.

markdown-it-py takes 2.6 s for 50 KB of `![`. Steps are counted instead of time, so that a text has
the same HTML on every machine: about one step for six characters is usual, and the limits below are
more than twice that. Beyond the inline limit the remaining paragraphs are shown as written. Beyond
the block limit, or when the nesting is deeper than the parser follows (it would drop text), the
whole text is.
"""

from __future__ import annotations

import re
from collections.abc import MutableMapping, Sequence
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from conversations.rendering import autolinks, formulas, links, tables
from conversations.rendering.code import LANGUAGES, HighlightTime, highlight_code
from conversations.rendering.continued import CLASS
from conversations.rendering.plain import render_plain, replace_controls

#: Most characters of a text, and of one paragraph of it, that are parsed at all.
MAX_SOURCE, MAX_BLOCK = 200_000, 20_000
#: Most characters of all formulas of a text; further ones are shown as written.
MAX_MATH = 12_000
#: What is shown as the name of a language, whether it is coloured or not.
_NAME = re.compile(r"[a-z0-9][a-z0-9+#._-]{0,19}")
#: The parser drops the content of blocks that open at this level.
_DEEPEST = 19


class TooCostly(Exception):
    """The text takes more steps than its length allows."""


class Parsed(NamedTuple):
    tokens: list[Token]
    env: MutableMapping[str, Any]


def _count_line(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    return _step(state.env, "lines")


def _count_inline(state: StateInline, silent: bool) -> bool:
    return _step(state.env, "steps")


def _step(env: MutableMapping[str, Any], of: str) -> bool:
    env[of] -= 1
    if env[of] < 0:
        raise TooCostly
    return False


def _inline(state: StateCore) -> None:
    for token in state.tokens:
        if token.type != "inline":
            continue
        token.children = []
        if len(token.content) > MAX_BLOCK:
            token.children = _keep_source(token.content)
            continue
        try:
            state.md.inline.parse(token.content, state.md, state.env, token.children)
        except TooCostly:
            token.children = _keep_source(token.content)


def _keep_source(text: str) -> list[Token]:
    children: list[Token] = []
    for line in text.split("\n"):
        children += (Token("text", "", 0, content=line), Token("hardbreak", "br", 0))
    return children[:-1]


def _fence(
    renderer: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any
) -> str:
    words = tokens[at].info.lower().split()
    language = words[0] if words and words[0] in LANGUAGES else "text"
    shown = language if env.get("is_coloured", True) else "text"
    known = env.setdefault("coloured", {})
    if (shown, tokens[at].content) not in known:
        found = highlight_code(tokens[at].content, shown, env["allowance"])
        known[shown, tokens[at].content] = found
    code = known[shown, tokens[at].content]
    further, name = "", ""
    if tokens[at].meta.get("is_continued"):
        further = f" {CLASS}"
    elif words and _NAME.fullmatch(words[0]):
        name = f'<span class="lang">{words[0]}</span>'
    box = f'<div class="code{further}">{name}<pre><code class="language-{language}">'
    return f"{box}{code}</code></pre></div>\n"


def _build_parser() -> MarkdownIt:
    md = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    md.disable(["html_inline", "html_block"])
    md.validateLink = links.is_allowed  # type: ignore[method-assign]
    md.inline.ruler.before("text", "count", _count_inline)
    alt: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list", "table"]}
    md.block.ruler.before("table", "count", _count_line, alt)
    md.block.ruler.at("table", tables.parse_table, {"alt": ["paragraph", "reference"]})
    md.core.ruler.at("inline", _inline)
    autolinks.add_autolinks(md)
    md.core.ruler.after("autolinks", "links", links.finish_links)
    md.core.ruler.after("links", "tables", tables.finish_tables)
    md.add_render_rule("fence", _fence)
    md.add_render_rule("code_block", _fence)
    formulas.add_formulas(md)
    return md


_MD = _build_parser()


def find_limits(size: int) -> dict[str, int]:
    """Return the steps that lines, and what stands in them, of so many characters may take."""
    return {"lines": 2_000 + size // 2, "steps": 2_000 + size // 3}


def parse_markdown(text: str) -> Parsed:
    """Parse a text that `replace_controls` has cleaned; raises TooCostly beyond the limits."""
    size = len(text)
    if size > MAX_SOURCE:
        raise TooCostly
    env: dict[str, Any] = {"allowance": HighlightTime(size), "formulas": MAX_MATH}
    env |= find_limits(size)
    tokens = _MD.parse(text, env)
    if any(token.nesting == 1 and token.level >= _DEEPEST for token in tokens):
        raise TooCostly
    return Parsed(tokens, env)


def render_tokens(tokens: list[Token], env: MutableMapping[str, Any]) -> str:
    return str(_MD.renderer.render(tokens, _MD.options, env))


def convert_markdown(source: str) -> str:
    """Return the HTML of a complete text, not yet cleaned."""
    text = replace_controls(source)
    try:
        return render_tokens(*parse_markdown(text))
    except TooCostly:
        return render_plain(text)
