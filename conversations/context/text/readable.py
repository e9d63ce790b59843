"""The readable text of an HTML page, in one pass: what a person would see, and where links lead.

A tolerant scanner instead of a parser: pages may be cut or broken, and the work must stay linear
whatever they hold. Scripts, styles and comments are left out, blocks become lines.
"""

from __future__ import annotations

import html
import re

_LOOKS = re.compile(
    r"<(?:!doctype html|html|head|body|div|table|ul|ol|p|span|section|article|main|h1)\b",
    re.IGNORECASE,
)
_TAG = re.compile(r"<!--|<(/?)([a-zA-Z][a-zA-Z0-9]*+)([^<>]*+)>|<[!?][^<>]*+>")
_HREF = re.compile(r"""\bhref\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++))""", re.IGNORECASE)
_SILENT = frozenset({"script", "style", "svg", "noscript", "template", "iframe"})
_INLINE = frozenset(
    {"a", "abbr", "b", "code", "em", "font", "i", "img", "mark", "s", "small", "span", "strong"}
    | {"sub", "sup", "time", "u", "wbr", "label", "button", "kbd", "q", "cite"}
)
_CELLS = frozenset({"td", "th"})


def is_html(text: str) -> bool:
    """Say whether a text is a page or a part of one."""
    head = text[:4_000]
    return head.lstrip()[:1] == "<" and _LOOKS.search(head) is not None


def readable(page: str) -> str:
    """Give the text of a page, one line for each of its blocks."""
    parts: list[str] = []
    at = 0
    while (tag := _TAG.search(page, at)) is not None:
        parts.append(_words(page[at : tag.start()]))
        at = tag.end()
        if tag[0] == "<!--":
            end = page.find("-->", at)
            at = len(page) if end < 0 else end + 3
        elif tag[2]:
            name = tag[2].lower()
            if name in _SILENT and not tag[1] and not tag[3].endswith("/"):
                at = _after_silent(page, at, name)
            parts.append(_mark(name, tag[1], tag[3]))
    parts.append(_words(page[at:]))
    lines = (" ".join(line.split()) for line in "".join(parts).split("\n"))
    return "\n".join(line for line in lines if line)


def _words(text: str) -> str:
    return html.unescape(text).replace("\n", " ")


def _mark(name: str, closing: str, attributes: str) -> str:
    if name == "a" and not closing:
        href = _HREF.search(attributes)
        target = html.unescape(next(filter(None, href.groups()), "")) if href else ""
        return f"<{target}> " if target and not target.startswith(("#", "javascript:")) else ""
    if name in _CELLS:
        return " | " if closing else ""
    return "" if name in _INLINE else "\n"


def _after_silent(page: str, at: int, name: str) -> int:
    end = re.compile(f"</{name}\\b[^<>]*+>?", re.IGNORECASE).search(page, at)
    return len(page) if end is None else end.end()
