"""The API's rules for the messages of a request, and where a list of them may be cut.

`check_rules` runs on every outgoing request: one that breaks a rule is a bug and is not sent. The
API merges consecutive messages of one role, so rules apply to merged turns; messages without blocks
are not sent and not checked. A message is read once per trail (`View.fold_cached`), so a call costs
what was appended since the last one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from conversations.context.errors import RuleError
from conversations.context.view.message_shape import Shape
from conversations.context.view.server_calls import ServerCalls
from conversations.context.view.view import Message, View
from conversations.context.view.view_cache import RULES_FOLD

MOST_MESSAGES = 100_000
#: Of the four breakpoints of a request the envelope uses two, leaving one spare.
MOST_MARKS = 1


def check_rules(view: View) -> None:
    """Raise RuleError for the first rule of the API that the view's messages break."""
    state = view.fold_cached(RULES_FOLD, _Turns, _Turns.read)
    state.finish()


def check_head(view: View) -> None:
    """Raise RuleError for the first rule that the beginning of a conversation breaks.

    It may end with an answer, but not with an open call.
    """
    state = view.fold_cached(RULES_FOLD, _Turns, _Turns.read)
    state.require_answers("messages")


def find_cuts(view: View) -> list[int]:
    """Return the positions where the messages may be cut, because no call is open there.

    0 and the end are always among them if every call of the view is answered. A late call of the
    API's own tools is not open any more.
    """
    open_calls: set[str] = set()
    served = ServerCalls()
    positions = [0]
    for at, message in enumerate(view.messages, start=1):
        shape = message.shape
        if shape.calls:
            open_calls.update(call.id for call in shape.calls)
        if shape.results:
            open_calls.difference_update(result.id for result in shape.results)
        served.read(message)
        if not open_calls and not served.open:
            positions.append(at)
    return positions


@dataclass(slots=True)
class _Turns:
    """The state of the merged turns after the messages read so far."""

    sent: int = 0
    role: str = ""
    marks: int = 0
    #: All ids of calls; calls of the last assistant turn without a result, and with one.
    ids: set[str] = field(default_factory=set)
    open: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)
    served: ServerCalls = field(default_factory=ServerCalls)
    #: Whether the present user turn has had a block that is not a tool result.
    is_past_results: bool = False
    #: Whether the present assistant turn has a call or a result of the API's own tools.
    is_served: bool = False

    def read(self, message: Message) -> None:
        if message.is_empty:
            return
        shape, role = message.shape, message.role
        where = f"messages.{self.sent}"
        if shape.flaw:
            rule, block, detail = shape.flaw
            raise RuleError(rule, f"{where}.{block}", detail)
        if shape.signed and (self.sent or shape.signed != (0,)):
            detail = "a signed compaction block must be the first block of the first message"
            raise RuleError("compaction", where, detail)
        if role != self.role:
            self._turn(where, role, shape)
        if role == "assistant":
            self._answer(where, message)
        else:
            self._user(where, message)
        self.sent += 1
        self.marks += shape.marks
        if self.marks > MOST_MARKS:
            raise RuleError("cache_control", where, f"at most {MOST_MARKS} mark is allowed")
        if self.sent > MOST_MESSAGES:
            raise RuleError("count", where, f"at most {MOST_MESSAGES:,} messages are allowed")

    def finish(self) -> None:
        """Check the end of the list."""
        if not self.sent:
            raise RuleError("empty", "messages", "at least one message is required")
        if self.role == "assistant":
            # A turn that the API paused in its own tools is sent back unchanged.
            if self.is_served and not self.open:
                return
            raise RuleError("end", "messages", "the conversation must end with a user message")
        self.require_answers("messages")

    def _turn(self, where: str, role: str, shape: Shape) -> None:
        if role == "user":
            self.is_past_results = False
        elif not self.role and shape.first != "compaction":
            raise RuleError("first", where, "the first message must be the user's")
        else:
            self.require_answers(where)
            self.open, self.answered, self.is_served = set(), set(), False
        self.role = role

    def _answer(self, where: str, message: Message) -> None:
        shape = message.shape
        for call in (*(call.id for call in shape.calls), *shape.server_calls):
            if call in self.ids:
                raise RuleError("unique", where, f"`tool_use` ids must be unique: {call}")
            self.ids.add(call)
        for call in shape.server_results:
            if call not in self.served.open and call not in shape.server_calls:
                raise RuleError("server_tool", where, f"no call {call} waits for its result block")
        self.open.update(call.id for call in shape.calls)
        self.served.read(message)
        self.is_served = self.is_served or bool(shape.server_calls or shape.server_results)

    def _user(self, where: str, message: Message) -> None:
        shape = message.shape
        self.served.read(message)
        if self.served.late:
            detail = f"{_list_some(set(self.served.late))} has no result block"
            raise RuleError("server_tool", where, detail)
        for result in shape.results:
            if result.id not in self.open:
                raise RuleError("unexpected", where, f"no call {result.id} in the message before")
            if result.id in self.answered:
                raise RuleError("duplicate", where, f"more than one result for {result.id}")
            self.answered.add(result.id)
        if shape.is_late or (shape.results and self.is_past_results):
            raise RuleError("order", where, "tool results come first in their message")
        self.is_past_results = self.is_past_results or shape.others

    def require_answers(self, where: str) -> None:
        missing = self.open - self.answered
        if missing:
            raise RuleError("unanswered", where, f"{_list_some(missing)} has no tool_result")


def _list_some(ids: set[str]) -> str:
    return ", ".join(sorted(ids)[:3])
