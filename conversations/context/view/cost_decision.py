"""Whether reducing now costs less than going on: prices, and the numbers behind a decision.

A reduction breaks the prompt cache: what remains behind the break is written again, which is
expensive; what was removed saves a cheap read on every later call. The number of later calls is
unknown. So the engine expects as many as were made since the context was at its low-water mark, and
acts when rewriting is paid back within half of them. This is the ski-rental rule (rent until the
rent has cost as much as buying): never more than twice the optimum, and the optimum in a
conversation that grows evenly. A conversation of few calls is never reduced for money.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

_MILLION = 1_000_000
#: Percent of the expected calls within which a reduction must be paid back.
PAYBACK_PERCENT = 50

#: `share`: over the share of the window; `cliff`: over a price cliff; `cold`: the prompt cache has
#: expired, so nothing is rewritten; `pays`: the calls to come pay it back; `asked`: a person's
#: request.
Why = Literal["share", "cliff", "cold", "pays", "asked"]


@dataclass(frozen=True, slots=True)
class Rates:
    """Micro-dollars per million tokens; above a prompt of `cliff` tokens all rise (0: never)."""

    input: int
    output: int
    cache_write: int
    cache_read: int
    cliff: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """The numbers a reduction was decided by; money in micro-dollars.

    `pays_back_calls` is the number of calls after which `cost` is saved, at `saved_each` a call; 0
    when it costs nothing or the prices are unknown.
    """

    why: Why
    saved_tokens: int
    saved_each: int
    cost: int
    pays_back_calls: int
    expected_calls: int

    @property
    def pays(self) -> bool:
        if not self.saved_each:
            return False
        return self.pays_back_calls * 100 <= self.expected_calls * PAYBACK_PERCENT

    @property
    def said(self) -> str:
        saves = f"frees about {self.saved_tokens:,} tokens a call"
        if not self.saved_each:
            return saves
        each = _format_dollars(self.saved_each)
        if not self.cost:
            return f"{saves} (${each}) at no cost: the prompt cache is cold"
        back, expected = self.pays_back_calls, self.expected_calls
        return (
            f"{saves} (${each}), costs ${_format_dollars(self.cost)}, "
            f"pays back after {back:,} calls, about {expected:,} expected"
        )


def weigh_reduction(
    why: Why, saved: int, rewritten: int, summary: tuple[int, int], rates: Rates | None, calls: int
) -> Decision:
    """Weigh freeing `saved` tokens against rewriting; `summary`: tokens its call reads, writes."""
    if rates is None:
        return Decision(why, saved, 0, 0, 0, calls)
    read, written = summary
    dearer = rewritten * max(0, rates.cache_write - rates.cache_read)
    cost = -(-(dearer + read * rates.input + written * rates.output) // _MILLION)
    each = max(1, saved * rates.cache_read // _MILLION)
    return Decision(why, saved, each, cost, -(-cost // each), calls)


def _format_dollars(micros: int) -> str:
    return f"{micros // _MILLION}.{micros % _MILLION:06d}"
