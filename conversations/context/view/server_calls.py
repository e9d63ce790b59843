"""Calls of tools that the API runs itself, paired with their results over the turn.

A call may be without its result at the end of an answer: where the API paused the turn, and beside
calls of our tools, which run first. The next answer then begins with the result. So pairs go by id,
over all answers of a turn. Once the turn is over, a call without a result is late: no request may
hold it any more, and the API never answers it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from conversations.context.view.blocks import is_server_result
from conversations.context.view.view import Message, View


@dataclass(slots=True)
class ServerCalls:
    """The calls without a result after the messages read so far, and those that are late.

    Both map a call's id to the number of its message. `callers` are calls on whose behalf one of
    our tools was called: such a call stays open until it has all results.
    """

    open: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    role: str = ""
    #: Calls that were open when the present assistant turn began, and whether it calls our tools.
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
        """Take the calls that the user's turn ends; results of our tools end only older ones."""
        ended = self.open.keys() if is_over else self.carried - self.callers
        for call in [call for call in self.open if call in ended]:
            self.late[call] = self.open.pop(call)


def read_server_calls(view: View) -> ServerCalls:
    """Return the state of the API's own calls at the end of the view."""
    return view.learn("server calls", ServerCalls, ServerCalls.read)


@dataclass(frozen=True, slots=True)
class FoundTokens:
    """Estimated tokens of the results in one answer.

    `leading` are of calls that an earlier answer left open; `trailing` came when the model had
    written its last word; it has read the others, `inner`. `rounds` is how often the model read and
    wrote, `reads` what it read of the inner results in all rounds together.
    """

    leading: int = 0
    inner: int = 0
    trailing: int = 0
    rounds: int = 1
    reads: int = 0


def estimate_results(answer: Message) -> FoundTokens:
    """Estimate the results of the API's own tools in an answer, which stand where they came."""
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
            # The model writes again: it has read what came.
            rounds, inner, fresh = rounds + 1, inner + fresh, 0
            reads += inner
        was_result = is_result
    return FoundTokens(leading, inner, fresh, max(1, rounds), reads)
