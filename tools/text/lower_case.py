"""Lower case that keeps the offset of every character, for searches that ignore case.

With query and text in this form a search is `str.find`: linear in the text, whatever the query, and
its offsets are those of the original. A letter with an accent is one character or two, so a query
is looked for in both spellings.
"""

from __future__ import annotations

from collections.abc import Iterable
from unicodedata import normalize


def lower_text(text: str) -> str:
    """Return the text in lower case, of the same length."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def list_spellings(query: str, lowered: str) -> tuple[str, ...]:
    """Return the spellings of a query that are in a text, both in lower case."""
    spelt = (query, normalize("NFC", query), normalize("NFD", query))
    return tuple(each for each in dict.fromkeys(map(lower_text, spelt)) if each in lowered)


class Places:
    """Where texts are in another, asked for from front to back, so that each is looked for once."""

    def __init__(self, text: str, wanted: Iterable[str]) -> None:
        self._text = text
        self._next = {each: text.find(each) for each in wanted}

    def find_first(self, start: int) -> tuple[int, int] | None:
        """Return where the first of the texts from there on begins and ends."""
        for each, at in self._next.items():
            if 0 <= at < start:
                self._next[each] = self._text.find(each, start)
        found = ((at, at + len(each)) for each, at in self._next.items() if at >= 0)
        return min(found, default=None)
