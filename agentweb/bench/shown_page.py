"""What a chat page shows of answers: applies the frames' swaps and keeps only the time stamps.

A page has two parts, `#history` and `#live`; each is a row of elements with ids of their own
(`turn-3-r1-done`), which frames replace, fill or append to. Messages are applied only when the
page is read, so a reader that only counts does not pay for it.
"""

from __future__ import annotations

import re

#: Microseconds in base 36, as the emulator writes them.
STAMP = re.compile(r"t([0-9A-Z]{10})")
#: The hidden copy of its text that a finished answer carries for the copy button.
_SOURCE = re.compile(r'<template class="source">.*?</template>', re.DOTALL)
_SWAP = re.compile(r'<\w+ [^>]*?hx-swap-oob="([^"]*)"[^>]*>')
_ID = re.compile(r' id="([^"]*)"')
_REGION = re.compile(r' id="(turn-\d+(?:-[\w-]+)?)"')
_MARKED = re.compile(r' data-after="(\d+)" data-mark="(\w*)"')
_PARTS = ("", "thinking", "done", "tail")

#: Stamps by the ids of the elements that contain them.
Regions = dict[str, list[str]]


class Shown:
    """The answers on one page; `bookmark` is where its history ends."""

    def __init__(self) -> None:
        self._history: Regions = {}
        self._live: Regions = {}
        self._bookmark = ("0", "")
        self._heard: list[str] = []
        #: Elements that frames addressed but that do not exist.
        self._missed: list[str] = []

    def take_message(self, message: str) -> None:
        self._heard.append(message)

    @property
    def stamps(self) -> list[str]:
        """Return the stamps in the order of the page."""
        self._fold()
        parts = (sorted(part.items(), key=_sort_key) for part in (self._history, self._live))
        return [stamp for part in parts for _, stamps in part for stamp in stamps]

    @property
    def bookmark(self) -> tuple[str, str]:
        self._fold()
        return self._bookmark

    @property
    def missed(self) -> list[str]:
        self._fold()
        return self._missed

    def _fold(self) -> None:
        heard, self._heard = self._heard, []
        for message in heard:
            text = _SOURCE.sub("", message)
            found = [*_SWAP.finditer(text)]
            ends = [each.start() for each in found[1:]] + [len(text)]
            for each, end in zip(found, ends, strict=True):
                how, _, target = each[1].partition(":#")
                own = _ID.search(each[0])
                self._swap(how, target or (own[1] if own else ""), text[each.start() : end])

    def _swap(self, how: str, name: str, html: str) -> None:
        if name == "history":
            self._history = _read_regions(html)
            if marked := _MARKED.search(html):
                self._bookmark = (marked[1], marked[2])
        elif name == "live" and how == "outerHTML":
            self._live = _read_regions(html)
        elif name == "live":
            self._put(self._live, html)
        elif name.startswith("turn-"):
            part = next((part for part in (self._history, self._live) if name in part), None)
            if part is None:
                self._missed.append(name)
            elif _REGION.search(html):
                # Our script replaces an element that an insertion brings a second time.
                self._put(part, html)
            else:
                before = part[name] if how == "beforeend" else []
                part[name] = before + STAMP.findall(html)

    def _put(self, part: Regions, html: str) -> None:
        """Replace elements by those of the same ids, with all elements inside them."""
        fresh = _read_regions(html)
        outer = next(iter(fresh), "")
        for name in [name for name in part if name == outer or name.startswith(f"{outer}-")]:
            del part[name]
        part |= fresh


def _read_regions(html: str) -> Regions:
    _, *found = _REGION.split(html)
    return {name: STAMP.findall(text) for name, text in zip(found[::2], found[1::2], strict=True)}


def _sort_key(item: tuple[str, list[str]]) -> tuple[int, int, int]:
    """Return the position of an element on its page: turn, round, part of the round."""
    _, turn, *rest = item[0].split("-")
    round_ = int(rest.pop(0)[1:]) if rest and rest[0][1:].isdigit() else 0
    part = rest[0] if rest else ""
    return int(turn), round_, _PARTS.index(part) if part in _PARTS else len(_PARTS)
