"""Shorten one long text so that the rest keeps its format.

JSON stays JSON (`shorten_json`), HTML becomes its readable text first, everything else keeps its
head and tail, cut at line borders, and from the middle the lines about errors. The result is never
longer than the limit or the input, and the same for the same input. `recall` is the id by which the
full text can be read again; the result then names it: JSON as data, text in a notice.
"""

from __future__ import annotations

import re

from conversations.context.text import graphemes, shorten_json
from tools.html.to_compact_text import html_to_compact_text, is_html

#: Below this limit a text has no room for a notice.
_ROOM_FOR_NOTICE = 256
#: Lines worth keeping from the middle, the share of the limit for them, and their greatest length.
_MATTERS = re.compile(
    r"\b(?:error|fatal|fail(?:ed|ure|ing)?|exception|traceback|panic|critical)\b", re.IGNORECASE
)
_MATTERS_PERCENT = 20
_LONGEST_LINE, _SHORT_LINE = 200, 12
_MANY_LINES = 30


def shorten(text: str, limit: int, recall: str = "") -> str:
    """Return the text within `limit` characters, unchanged when it fits."""
    if len(text) <= limit:
        return text
    as_json = shorten_json.shorten_json(text, limit, recall)
    return shorten_text(text, limit, recall) if as_json is None else as_json


def shorten_text(text: str, limit: int, recall: str = "") -> str:
    """Return the text within `limit` characters, without treating it as JSON."""
    if len(text) <= limit:
        return text
    whole, room = len(text), limit
    if is_html(text):
        head = f"[HTML of {whole:,} characters, as readable text]\n"
        text = html_to_compact_text(text) or text
        if limit >= _ROOM_FOR_NOTICE and len(text) < whole:
            text = head + text
    if recall and limit >= _ROOM_FOR_NOTICE:
        room -= len(write_cut_notice(limit, whole, recall)) + 1
        text = _keep_ends(text, room)
        return f"{text}\n{write_cut_notice(len(text), whole, recall)}"
    return _keep_ends(text, room)


def cut_head(text: str, limit: int) -> str:
    """Return the head of a text up to a line or word border, within `limit` characters."""
    if len(text) <= limit:
        return text
    end = graphemes.find_cut_before(text, limit)
    line = text.rfind("\n", end // 2, end + 1)
    if line > 0:
        return text[:line]
    word = text.rfind(" ", max(end - 40, end // 2), end + 1)
    return text[: word if word > 0 else end]


def cut_tail(text: str, limit: int) -> str:
    """Return the tail of a text from a line or word border on, within `limit` characters."""
    if len(text) <= limit:
        return text
    start = graphemes.find_cut_after(text, len(text) - limit)
    line = text.find("\n", start - 1, start + (len(text) - start) // 2)
    if line >= 0:
        return text[line + 1 :]
    word = text.find(" ", start - 1, min(start + 40, start + (len(text) - start) // 2))
    return text[word + 1 :] if word >= 0 else text[start:]


def write_cut_notice(shown: int, whole: int, recall: str) -> str:
    """Say that a text was cut and how the model gets the rest."""
    return (
        f"[truncated for context management: {shown:,} of {whole:,} characters shown; "
        f'recall "{recall}" for the rest]'
    )


def preview_text(text: str, head: int, tail: int) -> str:
    """Return the first `head` and last `tail` characters of a text that is longer than both."""
    if len(text) <= head + tail + 40:
        return text
    first, last = cut_head(text, head), cut_tail(text, tail)
    return f"{first}\n{_write_gap(len(text) - len(first) - len(last))}\n{last}"


def _write_gap(count: int) -> str:
    return f"[… {count:,} characters left out …]"


def _keep_ends(text: str, limit: int) -> str:
    """Keep head and tail, and from the middle the lines about errors."""
    if len(text) <= limit:
        return text
    room = limit - len(_write_gap(len(text))) - 2
    if room < 16:
        return text[: graphemes.find_cut_before(text, limit)]
    wanted = 0
    if text.count("\n") >= _MANY_LINES and _MATTERS.search(text, room // 2, len(text) - room // 4):
        wanted = room * _MATTERS_PERCENT // 100
    head = cut_head(text, (room - wanted) * 2 // 3)
    tail = cut_tail(text, room - wanted - len(head))
    between = text[len(head) : len(text) - len(tail)]
    middle = _find_error_lines(between, min(wanted, room - len(head) - len(tail)))
    left_out = _write_gap(len(between) - len(middle))
    return f"{head}\n{left_out}\n{middle}{tail}"


def _find_error_lines(text: str, room: int) -> str:
    """Collect whole lines about errors, first ones first, each with its line end."""
    kept: list[str] = []
    at = 0
    while room > _SHORT_LINE:
        found = _MATTERS.search(text, at)
        if found is None:
            break
        # The line begins after a line break, which may be that of the last line examined.
        start = text.rfind("\n", max(at - 1, 0), found.start()) + 1
        end = text.find("\n", found.end())
        line = text[start : end if end >= 0 else len(text)]
        at = len(text) if end < 0 else end + 1
        # The first and the last line of the middle may be cut, so they are not kept.
        if start and end >= 0 and len(line) <= min(_LONGEST_LINE, room - 1):
            kept.append(line)
            room -= len(line) + 1
    return "".join(f"{line}\n" for line in kept)
