"""Check by independent rules that a shortened text is an honest part of its original."""

from __future__ import annotations

import json
import re
from typing import Any

_ITEMS = re.compile(r"… ([\d,]+) items omitted …")
_KEYS = re.compile(r"([\d,]+) keys omitted")
_CHARACTERS = re.compile(r"… ([\d,]+) characters omitted …")
_LEFT_OUT = re.compile(r"\n\[… ([\d,]+) characters left out …\]\n")
_SAID = re.compile(r'(?: ?… )?shortened from [\d,]+ characters; recall "toolu_1" for the rest')
NOTICE = re.compile(
    r"\n\[truncated for context management: [\d,]+ of [\d,]+ characters shown; "
    r'recall "toolu_1" for the rest\]\Z'
)


class Pairs(list[tuple[str, Any]]):
    """An object with its doubled keys."""


class Digits(str):
    """A number as it was written."""

    __slots__ = ()


def read(text: str) -> Any:
    """Read JSON, keeping what the usual reader loses."""
    return json.loads(
        text, object_pairs_hook=Pairs, parse_int=Digits, parse_float=Digits, parse_constant=Digits
    )


def is_part(short: Any, whole: Any) -> bool:
    """Say whether a value shows only what the whole has, in order, and owns up to the rest."""
    if isinstance(whole, Pairs):
        return isinstance(short, Pairs) and _are_pairs(short, whole)
    if isinstance(whole, list):
        return isinstance(short, list) and not isinstance(short, Pairs) and _are_items(short, whole)
    if isinstance(short, list):
        return False
    if isinstance(whole, str):
        return short == whole or (type(short) is str and is_cut(short, str(whole)))
    return short is whole or (isinstance(short, str) and is_cut(short, json.dumps(whole)))


def is_cut(short: str, whole: str) -> bool:
    """Say whether a text is the head and the tail of another, with the right count between."""
    short = _SAID.sub("", short)
    gap = _CHARACTERS.search(short)
    if gap is None:
        return short == whole or (short.endswith("…") and whole.startswith(short[:-1])) or not short
    head, tail = short[: gap.start()], short[gap.end() :]
    is_counted = len(head) + len(tail) + _number(gap[1]) == len(whole)
    return is_counted and whole.startswith(head) and whole.endswith(tail)


def _are_items(short: list[Any], whole: list[Any]) -> bool:
    shown = [item for item in short if not (type(item) is str and _SAID.fullmatch(item))]
    gaps = [at for at, item in enumerate(shown) if type(item) is str and _ITEMS.fullmatch(item)]
    if len(shown) == len(whole) and all(map(is_part, shown, whole)):
        return True
    if not gaps:
        return not shown
    at = gaps[0]
    head, tail = shown[:at], shown[at + 1 :]
    if len(head) + len(tail) + _number(_ITEMS.fullmatch(shown[at])[1]) != len(whole):  # type: ignore[index]
        return False
    end = whole[len(whole) - len(tail) :]
    return all(map(is_part, head, whole)) and all(map(is_part, tail, end))


def _are_pairs(short: Pairs, whole: Pairs) -> bool:
    shown = [pair for pair in short if not _SAID.fullmatch(str(pair[1]))]
    gaps = [at for at, (key, value) in enumerate(shown) if _is_gap(key, value)]
    if len(shown) == len(whole) and all(map(_is_pair, shown, whole)):
        return True
    if not gaps:
        return not shown
    at = gaps[0]
    head, tail = shown[:at], shown[at + 1 :]
    gone = _KEYS.fullmatch(shown[at][1])
    if gone is None or len(head) + len(tail) + _number(gone[1]) != len(whole):
        return False
    end = whole[len(whole) - len(tail) :]
    return all(map(_is_pair, head, whole)) and all(map(_is_pair, tail, end))


def _is_gap(key: str, value: Any) -> bool:
    return not key.strip("…") and type(value) is str and _KEYS.fullmatch(value) is not None


def _is_pair(short: tuple[str, Any], whole: tuple[str, Any]) -> bool:
    return short[0] == whole[0] and is_part(short[1], whole[1])


def ends(short: str) -> tuple[str, str, str]:
    """Take a shortened plain text apart: its head, what was kept of the middle, and its tail."""
    text = NOTICE.sub("", short)
    gap = _LEFT_OUT.search(text)
    if gap is None:
        return text, "", ""
    return text[: gap.start()], text[gap.start() : gap.end()], text[gap.end() :]


def borders(pieces: list[str]) -> set[int]:
    """Give the places between pieces, counted in characters."""
    found, at = {0}, 0
    for piece in pieces:
        at += len(piece)
        found.add(at)
    return found


def _number(text: str) -> int:
    return int(text.replace(",", ""))
