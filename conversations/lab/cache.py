"""Simulate the prompt cache as documented: written at breakpoints, read by looking back, expiring.

A request reads the longest prefix that an earlier one wrote, found within twenty positions of a
breakpoint; what lies between that prefix and the request's last breakpoint is written, the rest is
uncached input. Prefixes below the model's minimum are silently not cached. A lifetime starts with
the last request that used the entry. The clock is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass

from conversations.agent.usage import Usage
from conversations.context.view.cache_breakpoints import SECONDS, Lifetime
from conversations.lab.cache_blocks import RequestBlocks

LOOK_BACK = 20
#: Fewest tokens of a prefix that a model caches; unlisted models use COMMON_MINIMUM.
MINIMUM = {
    "claude-fable-5-2": 512, "claude-fable-5-1": 512, "claude-fable-5": 512,
    "claude-opus-5-5": 512, "claude-opus-5": 512,
    "claude-opus-4-7": 2_048, "claude-opus-4-6": 4_096, "claude-opus-4-5": 4_096,
    "claude-haiku-4-5": 4_096,
}  # fmt: skip
COMMON_MINIMUM = 1_024


@dataclass(slots=True)
class _Entry:
    lifetime: Lifetime
    expires: float


class PromptCache:
    """The cache of one workspace for one model."""

    def __init__(self, minimum: int) -> None:
        self._minimum = minimum
        self._entries: dict[bytes, _Entry] = {}

    def bill(self, line: RequestBlocks, output: int, now: float) -> Usage:
        """Split the request's tokens as they are billed, and store what it writes."""
        marks = {at: life for at, life in line.marks().items() if line.size(at) >= self._minimum}
        hit = max((self._look_back(line, at, now) for at in marks), default=-1)
        read = line.size(hit) if hit >= 0 else 0
        long = max((at for at, life in marks.items() if life == "1h" and at > hit), default=-1)
        hour = line.size(long) - read if long >= 0 else 0
        last = max(marks, default=-1)
        five = line.size(last) - read - hour if last > hit else 0
        self._remember(line, marks, hit, now)
        return Usage(line.tokens - read - hour - five, output, read, five, hour)

    def _look_back(self, line: RequestBlocks, mark: int, now: float) -> int:
        for at in range(mark, max(-1, mark - LOOK_BACK), -1):
            entry = self._entries.get(line.key(at))
            if entry is not None and entry.expires > now:
                return at
        return -1

    def _remember(
        self, line: RequestBlocks, marks: dict[int, Lifetime], hit: int, now: float
    ) -> None:
        if hit >= 0:
            used = self._entries[line.key(hit)]
            used.expires = max(used.expires, now + SECONDS[used.lifetime])
        for at, life in marks.items():
            if at > hit:
                self._entries[line.key(at)] = _Entry(life, now + SECONDS[life])


def find_minimum(model: str) -> int:
    """Return the fewest tokens of a prefix that this model caches."""
    return MINIMUM.get(model, COMMON_MINIMUM)
