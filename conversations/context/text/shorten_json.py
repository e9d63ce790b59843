"""Shorten JSON so that it is still JSON.

Arrays keep their first and last elements and say as data how many were left out; objects keep their
keys in order and shorten long values; long strings keep head and tail. Numbers are kept as they
were written. The limit is distributed from the top down: small values get what they need, large
ones share the rest, so the cost is one parse and then only what is shown.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from json.encoder import encode_basestring
from typing import Any

from conversations.context.text import graphemes
from conversations.context.text.water_level import find_water_level

_SURROGATE = re.compile("[\ud800-\udfff]")
_STARTS = frozenset('{["-0123456789tfnNI')
#: Containers nested deeper than this are shown as their text.
_DEEPEST = 100
#: Fewest characters of an array's element or an object's value that are worth showing.
_ELEMENT, _VALUE = 24, 12


class _Number(str):
    """A number (or NaN, Infinity) as it was written."""

    __slots__ = ()


class _Object(list[tuple[str, Any]]):
    """Pairs in order, repeated keys included."""


class _TooDeep(Exception):
    pass


_decoder = json.JSONDecoder(
    object_pairs_hook=_Object, parse_float=_Number, parse_int=_Number, parse_constant=_Number
)


def shorten_json(text: str, limit: int, recall: str = "") -> str | None:
    """Return the JSON text within `limit` characters, or None when it is not JSON."""
    if text.lstrip()[:1] not in _STARTS:
        return None
    try:
        value = _decoder.decode(text.strip())
        fitter = _Fitter()
        if fitter.size(value) <= limit:
            return fitter.fit(value, limit)
        said = _write_note(len(text), recall, value)
        if len(said) + 64 > limit:
            return fitter.fit(value, limit)
        short = fitter.fit(value, limit - len(said))
    except ValueError:
        return None
    except (_TooDeep, RecursionError):
        return _shorten_string(text, limit)
    comma = "," if not short.startswith('"') and len(short) > 2 else ""
    return short[:-1] + (said if comma else said.removeprefix(",")) + short[-1]


def _write_note(whole: int, recall: str, value: Any) -> str:
    """Write the note that values are missing, to be inserted before the last character."""
    if not recall:
        return ""
    words = f'shortened from {whole:,} characters; recall "{recall}" for the rest'
    if isinstance(value, _Object):
        # Another key than that of the count of omitted keys, so that both can be read.
        key = _choose_key(value, _choose_key(value) + "…")
        return f',"{key}":{_quote(words)}'
    if isinstance(value, list):
        return f",{_quote('… ' + words)}"
    return f" … {_quote(words)[1:-1]}"


def _choose_key(pairs: _Object, marker: str = "…") -> str:
    """Return a key for a note about an object, different from the object's own keys."""
    while any(key == marker for key, _ in pairs):
        marker += "…"
    return marker


@dataclass(frozen=True, slots=True)
class _Entry:
    """A value of a container: what stands before it (a key), and the length of its own text."""

    head: str
    value: Any
    size: int


class _Fitter:
    """Sizes of one value's parts, each measured once."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}

    def size(self, value: Any, depth: int = 0) -> int:
        """Return the length of a value's compact text."""
        if not isinstance(value, list):
            return len(_write_scalar(value))
        known = self.sizes.get(id(value))
        if known is None:
            if depth > _DEEPEST:
                raise _TooDeep
            if isinstance(value, _Object):
                parts = [len(_quote(k)) + 1 + self.size(v, depth + 1) for k, v in value]
            else:
                parts = [self.size(item, depth + 1) for item in value]
            known = self.sizes[id(value)] = sum(parts) + max(1, len(parts)) + 1
        return known

    def fit(self, value: Any, room: int) -> str:
        """Return a value's text within `room` characters; 2 are always enough."""
        if isinstance(value, _Object):
            return "{" + self._fit_object(value, room - 2) + "}"
        if isinstance(value, list):
            return "[" + self._fit_array(value, room - 2) + "]"
        text = _write_scalar(value)
        if len(text) <= room:
            return text
        return _shorten_string(str(value) if isinstance(value, str) else text, room)

    def _fit_array(self, items: list[Any], room: int) -> str:
        entries = [_Entry("", item, self.size(item)) for item in items]
        floor = max(_ELEMENT, room // 8)
        first, last, note = _choose_entries(entries, room, floor, _write_items_note)
        if not first and len(note) + 2 * (_VALUE + 1) <= room:
            # The first and the last element are shown, however much of them is left out.
            first, last = 1, int(len(items) > 1)
            note = _write_items_note(len(items) - 2) if len(items) > 2 else ""
        return self._render_entries(entries, first, last, note, room)

    def _fit_object(self, pairs: _Object, room: int) -> str:
        entries = [_Entry(_quote(key) + ":", value, self.size(value)) for key, value in pairs]
        marker = _choose_key(pairs)

        def left_out(count: int) -> str:
            return f'"{marker}":"{count:,} keys omitted"'

        first, last, note = _choose_entries(entries, room, _VALUE, left_out)
        return self._render_entries(entries, first, last, note, room)

    def _render_entries(
        self, entries: list[_Entry], first: int, last: int, note: str, room: int
    ) -> str:
        """Write so many entries from the front and from the back, with the note in between."""
        chosen = [*entries[:first], *entries[len(entries) - last :]]
        left = room - len(note) - (1 if note and chosen else 0) - max(0, len(chosen) - 1)
        left -= sum(len(each.head) for each in chosen)
        level = find_water_level([each.size for each in chosen], left)
        shown = [each.head + self.fit(each.value, min(level, each.size)) for each in chosen]
        return ",".join([*shown[:first], *([note] if note else []), *shown[first:]])


def _choose_entries(
    entries: list[_Entry], room: int, floor: int, left_out: Callable[[int], str]
) -> tuple[int, int, str]:
    """Return how many entries to show from the front and from the back, and the note on the others.

    All are shown if they fit with up to `floor` characters of each value.
    """
    count = len(entries)
    needs = [len(each.head) + min(each.size, floor) + 1 for each in entries]
    if sum(needs) - 1 <= room:
        return count, 0, ""
    note = left_out(count)
    first, last = _count_shown(needs, room - len(note))
    note = left_out(count - first - last) if len(note) <= room else ""
    return first, last, note


def _count_shown(needs: list[int], room: int) -> tuple[int, int]:
    """Count entries from the front, for two thirds of the room, and from the back for the rest."""
    front = bisect_right(list(accumulate(needs)), room * 2 // 3)
    used = sum(needs[:front])
    back = bisect_right(list(accumulate(reversed(needs[front:]))), room - used)
    used += sum(needs[len(needs) - back :])
    more = bisect_right(list(accumulate(needs[front : len(needs) - back])), room - used)
    return front + more, back


def _write_items_note(count: int) -> str:
    return f'"… {count:,} items omitted …"'


def _write_scalar(value: Any) -> str:
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, str):
        return _quote(value)
    return {None: "null", True: "true", False: "false"}[value]


def _quote(text: str) -> str:
    quoted = encode_basestring(text)
    if _SURROGATE.search(quoted):
        quoted = _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)
    return quoted


def _shorten_string(text: str, room: int) -> str:
    """Quote the head and the tail of a text within `room` characters."""
    word = f"… {len(text):,} characters omitted …"
    if room < len(word) + 24:
        return _quote(_cut_head(text, room - 3) + "…") if room > 2 else '""'
    left = room - 2 - len(word)
    head = _cut_head(text, left * 2 // 3)
    tail = _cut_tail(text, left - len(_quote(head)) + 2)
    return _quote(f"{head}… {len(text) - len(head) - len(tail):,} characters omitted …{tail}")


def _cut_head(text: str, room: int) -> str:
    """Return the longest head whose quoted text fits."""
    most = min(len(text), max(room, 0))
    fits = bisect_right(range(most + 1), max(room, 0) + 2, key=lambda n: len(_quote(text[:n]))) - 1
    return text[: graphemes.find_cut_before(text, fits)]


def _cut_tail(text: str, room: int) -> str:
    """Return the longest tail whose quoted text fits."""
    most = min(len(text), max(room, 0))
    whole = len(text)

    def quoted(count: int) -> int:
        return len(_quote(text[whole - count :]))

    fits = bisect_right(range(most + 1), max(room, 0) + 2, key=quoted) - 1
    return text[graphemes.find_cut_after(text, whole - fits) :]
