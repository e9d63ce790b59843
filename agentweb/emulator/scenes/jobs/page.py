"""Reads a fetched page, as HTML or as text."""

from __future__ import annotations

import re
from html import unescape

_CODE = re.compile(r"<(script|style|svg)\b.*?</\1>", re.IGNORECASE | re.DOTALL)
_BLOCK = re.compile(
    r"</?(?:p|li|h\d|div|section|tr|br|ul|ol|title|header|main|footer|nav|aside)\b[^<>]*>",
    re.IGNORECASE,
)
_TAG = re.compile(r"<[^<>]+>")
_HREF = re.compile(r"href=[\"']([^\"']+)[\"']", re.IGNORECASE)
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_BARE = re.compile(r"https?://[^\s<>\"')\]|,]+")
_CUT = re.compile(r"recall\s+\"?(toolu_[\w-]+)|truncated for context management", re.IGNORECASE)


def plain(text: str) -> str:
    """Return readable text, one block a line."""
    if text.count("</") > 5:
        text = unescape(_TAG.sub("", _BLOCK.sub("\n", _CODE.sub("", text))))
    return re.sub(r"[ \t]+", " ", text)


def addresses(text: str) -> list[str]:
    """Return the addresses in a text, in order and without duplicates; relative ones too."""
    found = [m[1] for m in _HREF.finditer(text)] + [m[1] for m in _LINK.finditer(text)]
    found += [address.rstrip(".;") for address in _BARE.findall(text)]
    return list(dict.fromkeys(found))


def is_cut(text: str) -> bool:
    """Return whether only a part of the original is in view."""
    return bool(_CUT.search(text))


def field(text: str, name: str) -> str:
    """Return the value after a label such as `Day rate:`; empty if there is none."""
    found = re.search(rf"{re.escape(name)}\W*?:[\s*_|]*([^\n|]+)", text)
    return found[1].strip(" *_") if found else ""


def passage(text: str, words: str) -> str:
    """Return the one or two sentences of a text about these words; empty if there are none."""
    wanted = [word for word in re.findall(r"[\w#.+]+", words.lower()) if word not in _SMALL]
    found: list[str] = []
    under_heading = False
    for line in filter(None, map(str.strip, plain(text).splitlines())):
        is_heading = line.startswith("#") or (len(line) < 60 and not re.search(r"[.:!?]", line))
        if is_heading:
            under_heading = _speaks_of(line, wanted)
            continue
        sentences = re.split(r"(?<=[.!?])\s+(?=[A-Z])", line)
        found += sentences[:1] if under_heading else [s for s in sentences if _speaks_of(s, wanted)]
        under_heading = False
    short_first = sorted(dict.fromkeys(found), key=lambda sentence: len(sentence) > 240)
    return " … ".join(sentence.strip(" *-|") for sentence in short_first[:2])


def _speaks_of(sentence: str, wanted: list[str]) -> bool:
    lower = sentence.lower().replace("-", " ")
    return bool(wanted) and all(word in lower for word in wanted)


_SMALL = frozenset(
    {"the", "a", "an", "its", "their", "about", "of", "for", "any", "there", "is", "what"}
)
