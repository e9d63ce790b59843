"""Choose how long the API keeps what it caches of a request: five minutes or an hour.

An hour costs more, but only for the tokens that the request adds: what it reads from the cache is
billed as read, and kept for the hour with the rest. A later request after a pause of more than five
minutes then need not write the whole context again. So an hour is chosen if, by the pauses and the
turns of the conversation (or, before any are known, by usual ones), it saves clearly more than it
costs: rather where little is added to much, as at the end of most turns, than where a long result
or a reduced context is written.
"""

from __future__ import annotations

from collections.abc import Collection

from conversations.context.view.cache_breakpoints import SECONDS, Lifetime
from conversations.context.view.cost_decision import Rates
from conversations.context.view.view import Message, View

#: Percent of the pauses before a prompt that are between the two lifetimes, assumed while no pause
#: is known, and the number of known pauses that this assumption counts for.
_USUAL, _WEIGHT = 20, 5
#: Calls of a usual turn, which counts as one more turn.
_CALLS = 5
#: Savings must be this many times the cost: the context may be reduced, or the person may leave.
_MARGIN = 2


def choose_lifetime(
    view: View, size: int, added: int, rates: Rates | None, pauses: Collection[int]
) -> Lifetime:
    """Return the cheaper lifetime for a request of `size` tokens, of which `added` are written.

    `pauses` are those before turns, in seconds. A pause follows only the last call of a turn; which
    call that is, is not known, so every call is the last one with the same probability.
    """
    if rates is None or rates.cache_write_1h <= rates.cache_write:
        return "5m"
    between = sum(SECONDS["5m"] <= pause < SECONDS["1h"] for pause in pauses)
    percent = (between * 100 + _USUAL * _WEIGHT) // (len(pauses) + _WEIGHT)
    made = view.learn("turns", _Turns, _Turns.read)
    saved = percent * made.prompts * size * (rates.cache_write - rates.cache_read)
    calls = made.answers + _CALLS
    costs = 100 * calls * added * (rates.cache_write_1h - rates.cache_write)
    return "1h" if saved > _MARGIN * costs else "5m"


class _Turns:
    """Counts the prompts and the answers of a view."""

    prompts = answers = 0

    def read(self, message: Message) -> None:
        self.prompts += message.kind == "prompt"
        self.answers += message.kind == "answer"
