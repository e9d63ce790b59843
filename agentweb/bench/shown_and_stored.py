"""Compares what tabs show in the end with what is stored, after enough time to deliver everything.

A delta is late when it arrived after the measured time, missing when it is stored and not shown,
and unstored when the emulator was to send it and no stored answer has it.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from agentweb.bench.readers import Reader
from agentweb.bench.tabs import Tab

#: Seconds until stored deltas must be shown, and between two polls.
PATIENCE, _LOOK = 60.0, 0.5
#: Differences that are reported in full.
_MOST = 5

Stored = dict[str, list[str]]
T = TypeVar("T")


async def compare_tabs(
    tabs: Sequence[Tab], stored: Stored, job: dict[str, Any], in_time: Sequence[int]
) -> dict[str, int]:
    """Count late, missing and unstored deltas; `in_time`: those each tab had shown in time."""

    def is_whole(tab: Tab) -> bool:
        return set(stored[tab.chat["chat"]]) <= set(tab.shown.stamps)

    _report_unequal(await _wait_until(tabs, is_whole), stored)
    wanted = [set(stored[tab.chat["chat"]]) for tab in tabs]
    shown = [len(each & set(tab.shown.stamps)) for tab, each in zip(tabs, wanted, strict=True)]
    return {
        "late": sum(max(0, now - then) for now, then in zip(shown, in_time, strict=True)),
        "missing": sum(map(len, wanted)) - sum(shown),
        "unstored": sum(max(0, job["deltas"] - len(each)) for each in wanted),
    }


async def compare_pages(readers: Sequence[Reader], job: dict[str, Any]) -> dict[str, int]:
    """Count the deltas that readers of what stores nothing here got late or never."""
    before = sum(reader.seen for reader in readers)
    await _wait_until(readers, lambda reader: reader.is_done.is_set())
    seen = sum(reader.seen for reader in readers)
    missing = sum(max(0, job["deltas"] - reader.seen) for reader in readers)
    return {"late": seen - before, "missing": missing, "unstored": 0}


async def count_unequal(tabs: Sequence[Tab], stored: Stored) -> dict[str, int]:
    """Count the tabs that at the end do not show exactly the stored deltas, in order and once."""

    def is_equal(tab: Tab) -> bool:
        is_here = tab.is_here.is_set() and not tab.shown.missed
        return is_here and tab.shown.stamps == stored[tab.chat["chat"]]

    unequal = await _wait_until(tabs, is_equal)
    _report_unequal(unequal, stored)
    words = sum(bool(stored[tab.chat["chat"]]) for tab in tabs)
    return {"answers": words, "unequal": len(unequal)}


def _report_unequal(unequal: Sequence[Tab], stored: Stored) -> None:
    """Report details of the first tabs that differ."""
    for tab in unequal[:_MOST]:
        shown, kept = tab.shown.stamps, stored[tab.chat["chat"]]
        sys.stderr.write(
            f"{tab.chat['chat']}: {len(kept)} deltas are stored, {len(shown)} are shown,"
            f" {len(set(kept) - set(shown))} are not, {len(shown) - len(set(shown))} are twice;"
            f" is {'' if tab.is_here.is_set() else 'not '}here, opened {tab.opened} times, failed"
            f" {dict(tab.failed)}, missed {tab.shown.missed[:_MOST]}\n"
        )


async def _wait_until(every: Sequence[T], is_good: Callable[[T], bool]) -> list[T]:
    """Wait until all are good; return those that are not by the deadline."""
    deadline = time.monotonic() + PATIENCE
    left = [one for one in every if not is_good(one)]
    while left and time.monotonic() < deadline:
        await asyncio.sleep(_LOOK)
        left = [one for one in left if not is_good(one)]
    return left
