"""How many more calls to expect of a conversation, learned from the conversations of the site.

Conversations have no typical length, so a mean is useless. What can be learned is which share of
the conversations with some number of calls reaches twice as many; from that follows the number of
further calls that half of them make. With few conversations to learn from, the share is one half
for each doubling, as measured on recorded sessions: as many further calls as were made.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

#: Share of conversations that reach twice as many calls, in permille, assumed before any were
#: observed, and the number of observed conversations that this assumption counts for.
_PRIOR, _WEIGHT = 500, 10
#: Number of doublings with a rate of their own: conversations of up to about a million calls.
_DOUBLINGS = 20
#: At most so many doublings are expected, whatever the rates.
_MOST_DOUBLINGS = 3


@dataclass(frozen=True, slots=True)
class Continuation:
    """`rates[n]`: of conversations of 2**n calls, the share in permille that reaches twice as many.

    Doublings beyond the last rate have the prior's rate.
    """

    rates: tuple[int, ...] = ()

    def expect_calls(self, made: int) -> int:
        """Return how many further calls half of the conversations with `made` calls reach."""
        made = max(1, made)
        reached, left = math.log2(made), math.log(2)
        start = reached
        while reached < start + _MOST_DOUBLINGS:
            step = min(math.floor(reached) + 1, start + _MOST_DOUBLINGS) - reached
            lost = -math.log(self._rate(math.floor(reached)) / 1_000)
            if lost * step >= left:
                reached += left / lost
                break
            left -= lost * step
            reached += step
        return round(2**reached - made)

    def _rate(self, doubling: int) -> int:
        return self.rates[doubling] if doubling < len(self.rates) else _PRIOR


#: Before anything is learned.
EVEN = Continuation()


def learn_continuation(calls: Iterable[tuple[int, bool]]) -> Continuation:
    """Learn from conversations: the calls of each, and whether it has ended.

    One that has not ended counts only for the doublings it has passed.
    """
    passed, ended = [0] * _DOUBLINGS, [0] * _DOUBLINGS
    for count, has_ended in calls:
        last = min(max(count, 1).bit_length() - 1, _DOUBLINGS - 1)
        for doubling in range(last):
            passed[doubling] += 1
        ended[last] += has_ended
    rates = tuple(map(_estimate_rate, passed, ended))
    return Continuation(rates)


def _estimate_rate(passed: int, ended: int) -> int:
    """Return the share that went on, in permille, between 10 and 990."""
    seen = passed + ended + _WEIGHT
    return min(990, max(10, (passed * 1_000 + _WEIGHT * _PRIOR) // seen))
