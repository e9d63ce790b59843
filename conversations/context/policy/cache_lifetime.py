"""Choose how long the API keeps what it caches of a conversation: five minutes or an hour.

An hour costs more for each token written, and saves writing the whole context again after a pause
of more than five minutes. It is chosen if, by the pauses of the conversation (or, before any are
known, by usual pauses), it saves clearly more than it costs. A request reads what an earlier one
cached with either lifetime, so the choice may change with every call.
"""

from __future__ import annotations

from collections.abc import Collection

from conversations.context.view.cache_breakpoints import SECONDS, Lifetime
from conversations.context.view.cost_decision import Rates
from conversations.context.view.view import Message, View

#: Percent of the pauses before a prompt that are between the two lifetimes, assumed while no pause
#: is known, and the number of known pauses that this assumption counts for.
_USUAL, _WEIGHT = 20, 5
#: Savings must be this many times the cost: the context may be reduced, or the person may leave.
_MARGIN = 2


def choose_lifetime(view: View, rates: Rates | None, pauses: Collection[int]) -> Lifetime:
    """Return the cheaper lifetime for a view; `pauses` are those before turns, in seconds.

    Assumed is that every turn adds the same number of tokens: those are written at the higher
    price, and the whole context is written again less often.
    """
    if rates is None or rates.cache_write_1h <= rates.cache_write:
        return "5m"
    between = sum(SECONDS["5m"] <= pause < SECONDS["1h"] for pause in pauses)
    percent = (between * 100 + _USUAL * _WEIGHT) // (len(pauses) + _WEIGHT)
    turns = view.learn("prompts", _Prompts, _Prompts.read).count
    saved = percent * turns * (rates.cache_write - rates.cache_read)
    costs = 100 * (rates.cache_write_1h - rates.cache_write)
    return "1h" if saved > _MARGIN * costs else "5m"


class _Prompts:
    """Counts the prompts of a view; each begins a turn, with a pause before it."""

    count = 0

    def read(self, message: Message) -> None:
        self.count += message.kind == "prompt"
