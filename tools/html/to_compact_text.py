"""A page as compact text, one line for each block: the form that the context engine shortens.

Links are kept as the page writes them, in front of their words; table cells are separated by bars.
No Markdown and no empty lines, since the characters of a shortened result are few. Pages that the
model fetches become Markdown instead (`to_markdown`).
"""

from __future__ import annotations

import re
from itertools import islice

from tools.html.scanner import MOST_TOKENS, End, Start, Text, scan_html

_LOOKS = re.compile(
    r"<(?:!doctype html|html|head|body|div|table|ul|ol|p|span|section|article|main|h1)\b",
    re.IGNORECASE,
)
_SILENT = frozenset({"svg", "noscript", "template"})
_INLINE = frozenset(
    {"a", "abbr", "b", "code", "em", "font", "i", "img", "mark", "s", "small", "span", "strong"}
    | {"sub", "sup", "time", "u", "wbr", "label", "button", "kbd", "q", "cite"}
)
_CELLS = frozenset({"td", "th"})


def is_html(text: str) -> bool:
    """Tell whether a text is a page or a part of one, by its first 4,000 characters."""
    head = text[:4_000]
    return head.lstrip()[:1] == "<" and _LOOKS.search(head) is not None


def html_to_compact_text(page: str) -> str:
    """Return the text of a page, which may be cut off or malformed, in linear time."""
    parts: list[str] = []
    silent = ""
    for token in islice(scan_html(page), MOST_TOKENS):
        match token:
            case End(name) if name == silent:
                silent = ""
                parts.append(_end(name))
            case _ if silent:
                continue
            case Start(name, attributes):
                silent = name if name in _SILENT else ""
                parts.append(_start(name, attributes.get("href", "")))
            case End(name):
                parts.append(_end(name))
            case Text(text):
                parts.append(text.replace("\n", " "))
    lines = (" ".join(line.split()) for line in "".join(parts).split("\n"))
    return "\n".join(line for line in lines if line)


def _start(name: str, href: str) -> str:
    if name == "a":
        return f"<{href}> " if href and not href.startswith(("#", "javascript:")) else ""
    return "" if name in _INLINE or name in _CELLS else "\n"


def _end(name: str) -> str:
    if name in _CELLS:
        return " | "
    return "" if name in _INLINE else "\n"
