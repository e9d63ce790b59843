"""Word-by-word comparison of two texts in bounded time; texts too different give None.

Most changed blocks were shortened, so nearly all of both texts is a common beginning and end. The
middle is compared only while the work is small; all blocks of a page share one `DiffBudget`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

#: Pairs of words that a page may compare in all; characters of unchanged text shown at each end.
MAX_PAIRS, CONTEXT = 1_500_000, 160
#: Characters of a removed or added piece that are shown.
LONGEST = 4_000
_WORD = re.compile(r"\s+|\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text; `cut` of its characters are not shown, and `tail` follows them."""

    kind: Literal["same", "gone", "new"]
    text: str
    cut: int = 0
    tail: str = ""


@dataclass(slots=True)
class DiffBudget:
    """The number of word pairs that may still be compared."""

    left: int = MAX_PAIRS


def compare_texts(before: str, after: str, budget: DiffBudget) -> tuple[Piece, ...] | None:
    """Return the pieces of both texts in order; None when they are too long and too different."""
    start = count_common(before, after)
    # Start at a word boundary.
    start = start if before == after else before.rfind(" ", 0, start) + 1
    end = count_common(before[start:][::-1], after[start:][::-1])
    old, new = _middle(before, start, end), _middle(after, start, end)
    olds, news = _WORD.findall(old), _WORD.findall(new)
    work = len(olds) * len(news)
    if work > budget.left:
        return None
    budget.left -= work
    pieces = [_same(before[:start])]
    matcher = SequenceMatcher(None, olds, news)
    for what, i, j, k, m in matcher.get_opcodes():
        if what == "equal":
            pieces.append(_same("".join(olds[i:j])))
        else:
            pieces += [_changed("gone", "".join(olds[i:j])), _changed("new", "".join(news[k:m]))]
    pieces.append(_same(before[len(before) - end :] if end else ""))
    return tuple(piece for piece in pieces if piece.text)


def count_common(one: str, other: str) -> int:
    """Return the length of the common beginning of two texts."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def _middle(text: str, start: int, end: int) -> str:
    return text[start : len(text) - end]


def _same(text: str) -> Piece:
    if len(text) <= 2 * CONTEXT + 80:
        return Piece("same", text)
    return Piece("same", text[:CONTEXT], len(text) - 2 * CONTEXT, text[-CONTEXT:])


def _changed(kind: Literal["gone", "new"], text: str) -> Piece:
    if len(text) <= LONGEST:
        return Piece(kind, text)
    half = LONGEST // 2
    return Piece(kind, text[:half], len(text) - 2 * half, text[-half:])
