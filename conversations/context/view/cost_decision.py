"""Whether reducing now costs less than going on: prices, and the numbers behind a decision.

A reduction breaks the prompt cache: what remains behind the break is written again, which is
expensive. What was removed saves a cheap read on every later call and, if the cache has expired,
also its writing now. A reduction is made for money only if its cost is paid back within the
expected calls (`policy/continuation.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from conversations.context.translation import gettext_noop, mark_recorded

_SAVES = mark_recorded(gettext_noop("frees about %(count)s tokens a call"))
_COSTS_NO_MORE = mark_recorded(
    gettext_noop(
        "frees about %(count)s tokens a call (%(used)s), costs no more than sending them once more:"
        " nothing is in the prompt cache"
    )
)
_COSTS = mark_recorded(
    gettext_noop(
        "frees about %(count)s tokens a call (%(used)s), costs %(amount)s, pays back after"
        " %(number)s calls, about %(most)s expected"
    )
)

_MILLION = 1_000_000
#: `room`: it does not fit the model; `cliff`: over a price cliff; `share`: over the share of the
#: window; `cold`: the prompt cache has expired, so nothing is rewritten; `pays`: the expected calls
#: pay it back; `asked`: a person's request.
Why = Literal["room", "cliff", "share", "cold", "pays", "asked"]
#: Reasons for which a reduction is made whatever it costs.
FORCED = ("room", "cliff")


@dataclass(frozen=True, slots=True)
class Rates:
    """Micro-dollars per million tokens; above a prompt of `cliff` tokens all rise (0: never)."""

    input: int
    output: int
    cache_write: int
    cache_read: int
    cliff: int = 0
    #: Rate of writing to a cache that is kept for an hour; 0: not available.
    cache_write_1h: int = 0

    def price_tokens(
        self, *, fresh: int = 0, read: int = 0, written: int = 0, output: int = 0
    ) -> int:
        """Return what a call costs in micro-dollars, rounded up, by how its tokens are billed."""
        cost = fresh * self.input + read * self.cache_read
        cost += written * self.cache_write + output * self.output
        return -(-cost // _MILLION)


@dataclass(frozen=True, slots=True)
class Decision:
    """The numbers a reduction was decided by; money in micro-dollars.

    `cost` is what it costs beyond the call that would be made without it. `pays_back_calls` is the
    number of calls after which it is saved, at `saved_each` a call; 0 if it costs no more or the
    prices are unknown.
    """

    why: Why
    saved_tokens: int
    saved_each: int
    cost: int
    pays_back_calls: int
    expected_calls: int

    @property
    def pays(self) -> bool:
        return self.saved_each > 0 and self.pays_back_calls <= self.expected_calls

    @property
    def is_justified(self) -> bool:
        """Whether it is made: it is forced, it pays, or the prices are unknown."""
        is_unpriced = self.why == "share" and not self.saved_each
        return self.why in FORCED or is_unpriced or self.pays

    @property
    def explanation(self) -> str:
        values = {
            "count": f"{self.saved_tokens:,}",
            "used": _format_dollars(self.saved_each),
            "amount": _format_dollars(self.cost),
            "number": f"{self.pays_back_calls:,}",
            "most": f"{self.expected_calls:,}",
        }
        if not self.saved_each:
            return _SAVES % values
        return (_COSTS if self.cost else _COSTS_NO_MORE) % values


def weigh_reduction(
    why: Why,
    saved: int,
    rewritten: int,
    summary: int,
    rates: Rates | None,
    calls: int,
    *,
    is_cold: bool = False,
) -> Decision:
    """Weigh freeing `saved` tokens against rewriting, within `calls` further calls.

    `summary` is what its call costs, in micro-dollars. With a cold cache the rest is written in any
    case, and what is removed is not written.
    """
    if rates is None:
        return Decision(why, saved, 0, 0, 0, calls)
    dearer = rewritten * max(0, rates.cache_write - rates.cache_read)
    if is_cold:
        dearer = -saved * rates.cache_write
    cost = max(0, summary - (-dearer // _MILLION))
    each = max(1, saved * rates.cache_read // _MILLION)
    return Decision(why, saved, each, cost, -(-cost // each), calls)


def _format_dollars(micros: int) -> str:
    """Write dollars with as many digits as matter, as pages do."""
    if micros < 50:
        return "<$0.0001"
    places = 2 if micros >= _MILLION else 3 if micros >= 10_000 else 4
    unit = 10 ** (6 - places)
    whole, rest = divmod((micros + unit // 2) // unit, 10**places)
    return f"${whole:,}.{rest:0{places}d}"
