"""All stories instead of a slice: one process for each core, every failure with its seed.

`python -m tests.context.thorough [COUNT] [FIRST]` runs them and prints what they met; a story that
breaks a law is run again by `python -m tests.context.thorough 1 SEED`.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.context.story import live

#: Stories of every run, in so many tests; all of them; and how many one process takes at a time.
SLICE, PARTS = int(os.environ.get("AGENTWEB_TEST_STORIES", "300")), 6
ALL = 100_000
_AT_ONCE = 500
#: The limits at which texts are shortened.
LIMITS = (
    range(64, 2_001)
    if os.environ.get("AGENTWEB_TEST_THOROUGH")
    else (*range(64, 160, 5), *range(160, 2_001, 97))
)


def part(number: int, parts: int, count: int) -> range:
    """Give the seeds of one part of so many stories."""
    return range(number * count // parts, (number + 1) * count // parts)


def _lived(seeds: Iterable[int]) -> tuple[Counter[str], list[str]]:
    met: Counter[str] = Counter()
    broken: list[str] = []
    for seed in seeds:
        try:
            met += live(seed)
        except Exception:
            broken.append(f"story {seed}\n{traceback.format_exc()}")
        met["stories"] += 1
    return met, broken


def main(count: int = ALL, first: int = 0) -> int:
    """Live so many stories; give how many broke a law."""
    started = time.monotonic()
    starts = range(first, first + count, _AT_ONCE)
    chunks = [range(start, min(start + _AT_ONCE, first + count)) for start in starts]
    met: Counter[str] = Counter()
    failed = 0
    say = partial(print, flush=True)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for found, broken in pool.map(_lived, chunks):
            met += found
            failed += len(broken)
            for text in broken[:3]:
                say(text)
            if met["stories"] % 10_000 == 0:
                say(f"{met['stories']:,} stories, {time.monotonic() - started:.0f} s")
    stories = met.pop("stories")
    for name, times in sorted(met.items()):
        say(f"{times:10,} {name}")
    say(f"{stories:,} conversations, {failed} broke a law, {time.monotonic() - started:.0f} s")
    return failed


if __name__ == "__main__":
    sys.exit(1 if main(*map(int, sys.argv[1:])) else 0)
