"""The prompt cache: written at cache breakpoints, read by looking back, expiring by the clock.

An entry is a cumulative hash of everything up to a mark, so any change before it is a miss. What
invalidates only from system or messages on (tool choice, thinking, images, toggles) is mixed in
where that level begins. An entry can be read only once the response that wrote it has begun; its
life counts from the start of the request that used it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from agentweb.emulator import tokens
from agentweb.emulator.ids import digest
from agentweb.emulator.model_catalogue import Model
from agentweb.emulator.prompt_units import Level, Lifetime, Unit, total_tokens
from agentweb.emulator.usage import Usage

LOOK_BACK = 20
_SECONDS: dict[Lifetime, float] = {"5m": 300.0, "1h": 3600.0}
_SWEEP_AT = 50_000


@dataclass(slots=True)
class _Entry:
    lifetime: Lifetime
    expires: float


@dataclass(frozen=True, slots=True)
class Plan:
    """What a request reads from the cache, and what it writes once its response begins."""

    usage: Usage
    started: float
    writes: tuple[tuple[bytes, Lifetime], ...]
    hit: bytes | None


class PromptCache:
    def __init__(self) -> None:
        self._entries: dict[bytes, _Entry] = {}

    def plan(
        self,
        line: list[Unit],
        *,
        model: Model,
        salts: dict[Level, bytes],
        automatic: Lifetime | None,
        now: float,
        earlier: tuple[Plan, ...] = (),
    ) -> Plan:
        """Split the prompt into cached, written and uncached tokens.

        `automatic` adds a breakpoint at the last unit. What `earlier` rounds of the same request
        write can be read.
        """
        keys = _cumulative(line, salts)
        sizes = _sizes(line)
        marks = _marks(line, sizes, model.min_cacheable, automatic)
        written = {key for plan in earlier for key, _ in plan.writes}
        hit = max((self._look_back(keys, at, now, written) for at in marks), default=-1)
        read = sizes[hit] if hit >= 0 else 0
        last_1h = max((at for at, life in marks.items() if life == "1h" and at > hit), default=-1)
        last = max(marks, default=-1)
        hour = max(0, sizes[last_1h] - read) if last_1h >= 0 else 0
        five = max(0, sizes[last] - read - hour) if last > hit else 0
        usage = Usage(
            fresh=total_tokens(line) - read - hour - five, read=read, write_1h=hour, write_5m=five
        )
        writes = tuple((keys[at], life) for at, life in marks.items() if at > hit)
        return Plan(usage, now, writes, keys[hit] if hit >= 0 else None)

    def begin(self, plan: Plan) -> None:
        """Store the plan's writes: they can be read once the response begins."""
        if len(self._entries) > _SWEEP_AT:
            alive = {k: e for k, e in self._entries.items() if e.expires > plan.started}
            self._entries = alive
        for key, lifetime in plan.writes:
            self._entries[key] = _Entry(lifetime, plan.started + _SECONDS[lifetime])
        if plan.hit is not None and (entry := self._entries.get(plan.hit)):
            entry.expires = max(entry.expires, plan.started + _SECONDS[entry.lifetime])

    def clear(self) -> None:
        self._entries.clear()

    def _look_back(self, keys: list[bytes], mark: int, now: float, written: set[bytes]) -> int:
        for at in range(mark, max(-1, mark - LOOK_BACK), -1):
            entry = self._entries.get(keys[at])
            if keys[at] in written or (entry is not None and entry.expires > now):
                return at
        return -1


def _cumulative(line: list[Unit], salts: dict[Level, bytes]) -> list[bytes]:
    keys: list[bytes] = []
    state, level = salts["tools"], "tools"
    for unit in line:
        if unit.level != level:
            if level == "tools":
                state = digest(state, salts["system"])
            if unit.level == "messages":
                state = digest(state, salts["messages"])
            level = unit.level
        state = digest(state, unit.key)
        keys.append(state)
    return keys


def _sizes(line: list[Unit]) -> list[int]:
    extra = tokens.REQUEST_TOKENS
    if any(unit.level == "tools" for unit in line):
        extra += tokens.TOOLS_TOKENS
    return [extra + size for size in accumulate(unit.tokens for unit in line)]


def _marks(
    line: list[Unit], sizes: list[int], minimum: int, automatic: Lifetime | None
) -> dict[int, Lifetime]:
    marks = {at: unit.mark for at, unit in enumerate(line) if unit.mark is not None}
    if automatic is not None and line:
        marks.setdefault(len(line) - 1, automatic)
    return {at: life for at, life in marks.items() if sizes[at] >= minimum}
