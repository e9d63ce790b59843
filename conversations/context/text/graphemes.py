"""Where a text may be cut: never inside what a reader sees as one character.

The standard library has no grapheme segmentation, so this covers what matters for cutting:
combining marks, joiners and variation selectors, emoji sequences and flags, Hangul syllables, Indic
conjuncts, CR LF, and surrogate pairs. When in doubt two code points stay together.
"""

from __future__ import annotations

import unicodedata

_ZWJ = "\u200d"
_EXTENDS = frozenset({"Mn", "Mc", "Me"})


def find_cut_before(text: str, at: int) -> int:
    """Return the greatest index up to `at` where the text may be cut."""
    at = min(at, len(text))
    while 0 < at < len(text) and not _may_cut(text, at):
        at -= 1
    return at


def find_cut_after(text: str, at: int) -> int:
    """Return the least index from `at` on where the text may be cut."""
    at = max(at, 0)
    while 0 < at < len(text) and not _may_cut(text, at):
        at += 1
    return at


def _may_cut(text: str, at: int) -> bool:
    left, right = text[at - 1], text[at]
    if left < "\u0300" and right < "\u0300":
        return not (left == "\r" and right == "\n")
    return not (
        unicodedata.category(right) in _EXTENDS
        or _ZWJ in {left, right}
        or "\U0001f3fb" <= right <= "\U0001f3ff"
        or "\U000e0020" <= right <= "\U000e007f"
        or "\udc00" <= right <= "\udfff"
        or _is_virama(left)
        or _is_hangul_inside(left, right)
        or _is_flag_inside(text, at)
    )


def _is_virama(left: str) -> bool:
    return unicodedata.combining(left) == 9


def _is_hangul_inside(left: str, right: str) -> bool:
    """Whether a cut would split a Hangul syllable; a leading consonant only joins another one."""
    if "\u1160" <= right <= "\u11ff":
        return "\u1100" <= left <= "\u11ff" or _is_syllable(left)
    return "\u1100" <= left <= "\u115f" and ("\u1100" <= right <= "\u115f" or _is_syllable(right))


def _is_syllable(char: str) -> bool:
    return "\uac00" <= char <= "\ud7a3"


def _is_flag_inside(text: str, at: int) -> bool:
    """Whether a cut would split a flag: a pair of regional indicators, counted from their start."""
    if not (_is_indicator(text[at]) and _is_indicator(text[at - 1])):
        return False
    start = at
    while start and _is_indicator(text[start - 1]):
        start -= 1
    return (at - start) % 2 == 1


def _is_indicator(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"
