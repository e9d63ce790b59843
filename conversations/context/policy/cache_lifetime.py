"""Choose how long the API keeps what it caches of a request: five minutes or an hour.

An hour costs more, but only for the tokens that the request adds: what it reads from the cache is
billed as read, and kept for the hour with the rest. A later request after a pause of more than five
minutes then need not write all of it again. So what counts is how much is not kept for an hour yet:
it grows with every call, and the call that pays for the hour secures it. If every call adds as much
and is the last one before such a pause with the same probability, the cheapest number of calls
between two payments follows from the prices (as the lot size of a store does). Hence an hour is
paid for where little is added to much, not where a long result or a reduced context is written.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from conversations.context.view.cache_breakpoints import SECONDS, Lifetime
from conversations.context.view.cost_decision import Rates
from conversations.context.view.view import Message, View

#: Percent of the pauses before a prompt that are between the two lifetimes, assumed while no pause
#: is known, and the number of known pauses that this assumption counts for.
_USUAL, _WEIGHT = 20, 5
#: Calls of a usual turn, which counts as one more turn.
_CALLS = 5


@dataclass(frozen=True, slots=True)
class CachedPrefix:
    """What the API keeps of the last request: most of it for `seconds` after that call.

    The first `tokens` of it are kept for an hour since the call that paid for that; 0: none are.
    """

    seconds: int = SECONDS["5m"]
    tokens: int = 0

    def after_call(
        self, passed: float, lifetime: Lifetime, tokens: int, *, is_changed: bool
    ) -> CachedPrefix:
        """Return what is kept after a further call, with a request of `tokens` tokens.

        `passed` are the seconds since the last call. `is_changed`: messages of the last request are
        not in this one unchanged.
        """
        if lifetime == "1h":
            return CachedPrefix(SECONDS["1h"], tokens)
        left = int(self.seconds - passed)
        is_kept = self.tokens and left > SECONDS["5m"] and not is_changed
        return CachedPrefix(left, self.tokens) if is_kept else CachedPrefix()


def choose_lifetime(
    view: View, added: int, unkept: int, rates: Rates | None, pauses: Collection[int]
) -> Lifetime:
    """Return the cheaper lifetime for a request that writes `added` tokens.

    `unkept` tokens of it, those included, are not kept for an hour yet. `pauses` are those before
    turns, in seconds. A pause follows only the last call of a turn; which call that is, is unknown.
    """
    if rates is None or rates.cache_write_1h <= rates.cache_write:
        return "5m"
    between = sum(SECONDS["5m"] <= pause < SECONDS["1h"] for pause in pauses)
    percent = (between * 100 + _USUAL * _WEIGHT) // (len(pauses) + _WEIGHT)
    made = view.fold_cached("turns", _Turns, _Turns.read)
    # With n calls of `added` tokens between two payments, a call risks (n - 1) / 2 of them on
    # average. So n is enough from n (n + 1) = 2 * price / (probability * loss) on.
    risk = percent * made.prompts * (rates.cache_write - rates.cache_read)
    price = 100 * (made.answers + _CALLS) * (rates.cache_write_1h - rates.cache_write)
    return "1h" if risk * unkept * (unkept + added) > 2 * price * added * added else "5m"


class _Turns:
    """Counts the prompts and the answers of a view."""

    prompts = answers = 0

    def read(self, message: Message) -> None:
        self.prompts += message.kind == "prompt"
        self.answers += message.kind == "answer"
