"""Highlighted code, in time that hostile input cannot extend.

Several Pygments lexers are quadratic in hostile text (4,000 characters: 1.5 s), and Python's `re`
holds the interpreter while it matches. So the lexers are a closed list, lines are short, and the
time is checked between two tokens; single matches of these lexers stay under 20 ms on such input.
The limit is thread time, so a busy machine does not change the result; the wall clock, which is
never behind it and far cheaper to read, decides when to check. Code that is too long, too wide or
too slow is shown without colours.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from time import monotonic, thread_time

from django.utils.html import escape
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES, _TokenType

MAX_CHARS = 60_000
MAX_LINE = 1_000
#: Characters that are coloured together: longer code is coloured in parts of whole lines.
MAX_PART = 12_000

#: Most characters of code that is kept with its colours, and most pieces of it: the code of an
#: answer is coloured as it is streamed, and again when the answer is stored.
KEPT_CHARS, MOST_KEPT = 1_000, 256
_kept: dict[tuple[str, str], str] = {}

#: Languages that are highlighted, by the names models write after the fence.
LANGUAGES = {
    name: lexer
    for lexer, names in {
        "python": "python py python3",
        "pycon": "pycon",
        "javascript": "javascript js jsx mjs",
        "typescript": "typescript ts tsx",
        "json": "json jsonc json5",
        "bash": "bash sh shell zsh",
        "html": "html htm django jinja",
        "xml": "xml svg",
        "css": "css",
        "scss": "scss",
        "sql": "sql postgresql sqlite",
        "c": "c h",
        "cpp": "cpp cc",
        "csharp": "csharp cs",
        "java": "java",
        "kotlin": "kotlin kt",
        "go": "go golang",
        "rust": "rust rs",
        "ruby": "ruby rb",
        "php": "php",
        "yaml": "yaml yml",
        "toml": "toml",
        "ini": "ini",
        "diff": "diff patch",
        "docker": "docker dockerfile",
        "lua": "lua",
        "swift": "swift",
        "r": "r",
        "powershell": "powershell ps1",
        "make": "make makefile",
        "graphql": "graphql",
        "text": "text txt plaintext",
    }.items()
    for name in names.split()
}

#: Pygments' short class names with a colour in the stylesheet, and those mapped to one of them.
_OWN = ["nf", "nc", "nd", "nt", "na", "nb", "gd", "gi", "gh", "gu"]
_AS = {"fm": "nf", "bp": "nb", "no": "nb", "ow": "k", "cp": "c", "il": "m", "ne": "nc"}
CLASSES = frozenset((*_OWN, "c", "k", "s", "m"))


class HighlightTime:
    """Thread seconds that all code blocks of a text may take together."""

    __slots__ = ("left",)

    def __init__(self, characters: int) -> None:
        self.left = 0.003 + 4e-6 * characters


@lru_cache(maxsize=64)
def _load_lexer(name: str) -> Lexer:
    return get_lexer_by_name(name, stripnl=False, ensurenl=False)


def highlight_code(code: str, language: str, allowance: HighlightTime) -> str:
    """Return the escaped code with coloured spans, or without them beyond the limits."""
    lexer = LANGUAGES.get(language, "text")
    is_wide = any(len(line) > MAX_LINE for line in code.split("\n"))
    if lexer == "text" or len(code) > MAX_CHARS or is_wide or allowance.left <= 0:
        return escape(code)
    if (shown := _kept.get((lexer, code))) is not None:
        return shown
    found: list[str] = []
    for part in _split(code):
        spans = _spans(part, _load_lexer(lexer), allowance)
        if spans is None:
            return escape(code)
        found += spans
    shown = "".join(found)
    if len(code) <= KEPT_CHARS:
        if len(_kept) >= MOST_KEPT:
            _kept.clear()
        _kept[lexer, code] = shown
    return shown


def _split(code: str) -> Iterator[str]:
    """Yield parts of whole lines, none of which is too long for a slow lexer."""
    part, size = list[str](), 0
    for line in code.splitlines(keepends=True):
        if size + len(line) > MAX_PART:
            yield "".join(part)
            part, size = [], 0
        part.append(line)
        size += len(line)
    yield "".join(part)


def _spans(code: str, lexer: Lexer, allowance: HighlightTime) -> list[str] | None:
    spans: list[str] = []
    started, due = thread_time(), monotonic() + allowance.left
    for shown, run in groupby(lexer.get_tokens(code), lambda token: _class(token[0])):
        pieces: list[str] = []
        for _, piece in run:
            pieces.append(piece)
            if monotonic() > due:
                left = allowance.left - (thread_time() - started)
                if left < 0:
                    allowance.left = 0
                    return None
                due = monotonic() + left
        text = escape("".join(pieces))
        spans.append(f'<span class="{shown}">{text}</span>' if shown else text)
    allowance.left -= thread_time() - started
    return spans


@lru_cache(maxsize=512)
def _class(kind: _TokenType) -> str:
    while kind not in STANDARD_TYPES and kind.parent is not None:
        kind = kind.parent
    short = STANDARD_TYPES[kind]
    shown = _AS.get(short, short)
    return shown if shown in _OWN else shown[:1] if shown[:1] in CLASSES else ""
