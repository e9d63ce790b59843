"""HTML as a stream of tags and text, in one pass and in linear time.

Used instead of html.parser, which scans to the end again for every construct that is left open: 60
KB of `<a ` take it 27 seconds. Here, as in a browser, what is left open at the end is dropped, so
each character is read once. Tags are yielded as they stand; nothing is balanced or corrected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import NamedTuple, TypeAlias

TEXT = re.compile(r"(?:[^<]|<(?![a-zA-Z/!?]))[^<]*+(?>(?:<(?![a-zA-Z/!?])[^<]*+)*)")
NAME = re.compile(r"[a-zA-Z][^\s/>]*+")
GAP = re.compile(r"[\s/]*+")
ATTRIBUTE = re.compile(r"""(=?[^\s/>=]*+)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s>]*+))?""")
#: Tokens that are read of one page: a second or two of work.
MOST_TOKENS = 300_000
#: Character references too long for `int()` to read; no character has such a number.
HUGE = re.compile(r"&#(?:[xX][0-9a-fA-F]{8,}+|[0-9]{8,}+);?")
#: Elements whose content is not markup: dropped, or text with character references.
DROPPED = frozenset({"script", "style", "iframe", "noembed", "noframes", "xmp"})
WORDS = frozenset({"title", "textarea"})
RAW = DROPPED | WORDS
#: Elements in which "/>" ends the element and not only the tag.
FOREIGN = frozenset({"svg", "math"})
KEPT = frozenset(
    {"href", "hidden", "style", "http-equiv", "content", "alt", "start"}
    | {"rel", "name", "property", "itemprop"}
)


class Start(NamedTuple):
    name: str
    attributes: dict[str, str]


class End(NamedTuple):
    name: str


class Text(NamedTuple):
    text: str


Token: TypeAlias = Start | End | Text


def scan_html(markup: str) -> Iterator[Token]:
    """Yield the start tags, end tags and text of a page."""
    at, end = 0, len(markup)
    while at < end:
        if found := TEXT.match(markup, at):
            yield Text(_unescape(found[0]))
            at = found.end()
        elif name := NAME.match(markup, at + 1):
            tag = name[0].lower()
            attributes, is_closed, at = _read_attributes(markup, name.end())
            yield Start(tag, attributes)
            if is_closed and tag in FOREIGN:
                yield End(tag)
            elif tag in RAW:
                inside, at = _read_raw(markup, at, tag)
                if tag in WORDS:
                    yield Text(_unescape(inside))
        elif markup.startswith("</", at) and (name := NAME.match(markup, at + 2)):
            _, _, at = _read_attributes(markup, name.end())
            yield End(name[0].lower())
        elif markup.startswith("<!--", at):
            at = _find_after(markup, "-->", at + 2)
        else:
            at = _find_after(markup, ">", at + 1)


def _read_attributes(markup: str, at: int) -> tuple[dict[str, str], bool, int]:
    """Read to the end of a tag: the attributes in use, whether it ends with "/>", and where."""
    kept: dict[str, str] = {}
    if markup.startswith(">", at):
        return kept, False, at + 1
    while True:
        at = _match(GAP, markup, at).end()
        if at >= len(markup) or markup[at] == ">":
            return kept, markup[at - 1] == "/", at + 1
        found = _match(ATTRIBUTE, markup, at)
        name = found[1].lower()
        if name in KEPT and name not in kept:
            kept[name] = _unescape(_unquoted(found[2] or ""))
        at = found.end()


def _match(pattern: re.Pattern[str], markup: str, at: int) -> re.Match[str]:
    found = pattern.match(markup, at)
    assert found is not None  # noqa: S101  every part of these patterns is optional
    return found


def _unquoted(value: str) -> str:
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if is_quoted else value


def _read_raw(markup: str, at: int, name: str) -> tuple[str, int]:
    found = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(markup, at)
    end = found.start() if found else len(markup)
    return markup[at:end], end


def _find_after(markup: str, mark: str, at: int) -> int:
    found = markup.find(mark, at)
    return len(markup) if found < 0 else found + len(mark)


def _unescape(text: str) -> str:
    return unescape(HUGE.sub("\ufffd", text)) if "&" in text else text
