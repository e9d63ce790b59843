"""How many more calls to expect of a conversation, learned from the conversations of the site.

Conversations have no typical length, so a mean would say nothing. What can be learned is how many
of those that reached some number of calls reach twice as many; from that follows the number of
further calls that half of them make. With few conversations to learn from it is a half for each
doubling, which was measured on recorded sessions, so that as many calls are expected as were made.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

#: Of conversations that reached some calls, the part in permille that reaches twice as many, and
#: how many observed conversations this counts for.
_PRIOR, _WEIGHT = 500, 10
#: Doublings that are told apart: conversations of up to about a million calls.
_DOUBLINGS = 20
#: No more doublings than this are expected, however many conversations went on.
_MOST_DOUBLINGS = 3


@dataclass(frozen=True, slots=True)
class Continuation:
    """`rates[n]`: of conversations of 2**n calls, the part in permille that reaches twice as many.

    Doublings behind the last rate go on at the prior.
    """

    rates: tuple[int, ...] = ()

    def expect_calls(self, made: int) -> int:
        """Return the further calls that half of the conversations of so many calls make."""
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
    """Learn from conversations: the calls each has made, and whether it has ended.

    One that goes on counts only for the doublings it has passed.
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
    """Return the permille that went on, never none and never all."""
    seen = passed + ended + _WEIGHT
    return min(990, max(10, (passed * 1_000 + _WEIGHT * _PRIOR) // seen))
