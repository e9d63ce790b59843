"""Calls of tools that the API runs itself, paired with their results over the turn.

A call may lack its result at the end of an answer: if the API paused the turn, or beside calls of
our tools, which run first. The next answer then begins with the result. So pairs are matched by id,
over all answers of a turn. Once the turn is over, a call without a result is late: no request may
contain it any more, and the API never answers it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from conversations.context.view.blocks import is_server_result
from conversations.context.view.view import Message, View
from conversations.context.view.view_cache import SERVER_CALLS_FOLD


@dataclass(slots=True)
class ServerCalls:
    """The calls without a result after the messages read so far, and the late ones.

    Both map a call's id to the number of its message. `callers` are calls that called one of our
    tools: such a call stays open until it has all results.
    """

    open: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    role: str = ""
    #: Calls that were open at the start of the present assistant turn; whether it calls our tools.
    carried: frozenset[str] = frozenset()
    callers: set[str] = field(default_factory=set)
    has_calls: bool = False

    def read(self, message: Message) -> None:
        if message.is_empty:
            return
        shape, role = message.shape, message.role
        if role == "assistant":
            if role != self.role:
                self.carried, self.has_calls, self.callers = frozenset(self.open), False, set()
            self.open.update(dict.fromkeys(shape.server_calls, message.seq))
            for call in shape.server_results:
                self.open.pop(call, None)
            self.has_calls = self.has_calls or bool(shape.calls)
            self.callers.update(shape.callers)
        elif self.open:
            self._end(is_over=shape.others or not self.has_calls)
        self.role = role

    def _end(self, *, is_over: bool) -> None:
        """Move to `late` what the user's turn ends; results of our tools end only older calls."""
        ended = self.open.keys() if is_over else self.carried - self.callers
        for call in [call for call in self.open if call in ended]:
            self.late[call] = self.open.pop(call)


def read_server_calls(view: View) -> ServerCalls:
    """Return the state of the API's own calls at the end of the view."""
    return view.fold_cached(SERVER_CALLS_FOLD, ServerCalls, ServerCalls.read)


@dataclass(frozen=True, slots=True)
class FoundTokens:
    """Estimated tokens of the results in one answer.

    `leading` are results of calls that an earlier answer left open; `trailing` came after the
    model's last text; `inner` are the others, which the model has read. `rounds` is how often the
    model read and wrote, `reads` the sum over all rounds of the inner results read.
    """

    leading: int = 0
    inner: int = 0
    trailing: int = 0
    rounds: int = 1
    reads: int = 0


def estimate_results(answer: Message) -> FoundTokens:
    """Estimate the results of the API's own tools in an answer, by their positions."""
    leading = inner = fresh = reads = 0
    rounds = 0
    was_result = True
    for block in answer.blocks:
        is_result = is_server_result(block.type)
        if is_result and rounds:
            fresh += block.tokens
        elif is_result:
            leading += block.tokens
        elif was_result:
            # The model writes again, so it has read the results before this block.
            rounds, inner, fresh = rounds + 1, inner + fresh, 0
            reads += inner
        was_result = is_result
    return FoundTokens(leading, inner, fresh, max(1, rounds), reads)
