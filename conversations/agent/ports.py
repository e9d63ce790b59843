"""The ports the loop depends on, and the values that pass through them."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, Protocol

from conversations.agent.answer import ToolUse
from conversations.agent.approval_rules import ApprovalQuestion
from conversations.agent.events import Event, TurnChanged
from conversations.agent.job import LoadedConversation
from conversations.agent.stop import Switch
from conversations.agent.usage import Usage
from conversations.context.pipeline import Veto
from conversations.context.policy.policy import Policy
from conversations.context.view.edits import Transformation
from conversations.context.view.envelope import Envelope
from conversations.context.view.view import Message, View

logger = logging.getLogger("agentweb.runner")

#: Request headers of the API's beta features.
Headers = Mapping[str, str]
NO_HEADERS: Headers = MappingProxyType({})
#: Minutes that one call waits at most for a limit a minute; seconds over which those that wait for
#: the same minute are spread.
MOST_WAITS, WAIT_SPREAD = 10, 2.0
Purpose = Literal["reply", "summary", "title"]
CallStatus = Literal["complete", "stopped", "truncated", "refused", "error"]


@dataclass(frozen=True, slots=True)
class ReplyAhead:
    """The reply for which a summary is requested: its model, estimated tokens, and searches."""

    model: str
    tokens: int
    searches: int = 0


@dataclass(frozen=True, slots=True)
class Sending:
    """A request about to be sent. `messages` is the wire text of its messages array.

    `view` is None when the messages are not a view of the log (a summary call). The estimate is of
    what is billed and reported: without what the API clears.
    """

    purpose: Purpose
    envelope: Envelope
    messages: str
    estimated_tokens: int
    view: View | None
    attempt: int
    #: The event that is published once the call is open.
    opens: Event | None = None
    #: What must still be affordable after this call, else it is refused.
    ahead: ReplyAhead | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """An open call: admitted, held and recorded. `body` is the request body.

    `is_limited`: the budget allowed a shorter answer than was requested.
    """

    call: int
    body: str
    is_limited: bool = False
    #: Whether a budget holds anything for it.
    is_held: bool = True
    #: The model whose tokenizer counts an answer that is cut off.
    model: str = ""
    #: Request headers that go with the body.
    headers: Headers = field(default_factory=dict)
    #: What the shell has recorded, for the end of the call.
    record: Any = field(default=None, compare=False, repr=False)


@dataclass(eq=False)
class Refused(Exception):
    """A call was not admitted (no budget, no price); `code` is the reason, `text` for people."""

    code: str
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(eq=False)
class RateLimitReached(Refused):
    """A limit a minute does not allow a call now and will in `seconds`, when the next begins.

    `waits_for` is the limit as a turn that waits records it.
    """

    seconds: float
    waits_for: str


@dataclass(eq=False)
class SearchesLimited(Refused):
    """A call is admitted with fewer web searches than it offers: with so many.

    Its tools would be others than those that its thinking was signed over, so it is prepared anew.
    """

    searches: int


@dataclass(eq=False)
class ModelFailed(Exception):
    """A call failed at the API or on the way; `code` is from a closed set.

    `code` is one of: rate_limited, overloaded, upstream, unreachable, timeout, cut, protocol_error,
    overflow, signature, invalid_request, authentication, permission, not_found, billing.
    """

    code: str
    text: str
    http_status: int | None = None
    retry_after: float | None = None
    request_id: str = ""
    may_retry: bool = False
    #: The API's own message, for the record; people read `text`.
    api_text: str = ""
    #: Part of the answer had been shown, or is stored.
    was_shown: bool = False
    #: The request was sent and the API did not refuse it, so it may bill an answer.
    may_cost: bool = False

    def __str__(self) -> str:
        return self.text

    @property
    def recorded(self) -> str:
        """The text for the record of the call, with the API's own message."""
        return f"{self.text} It said: {self.api_text}" if self.api_text else self.text


@dataclass(frozen=True, slots=True)
class Head:
    """The headers of the response have arrived."""

    request_id: str
    http_status: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Stream events that were read together, as the API sent them."""

    events: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Ending:
    """How a call ended. `blocks` are the answer's blocks to store; if empty, nothing is stored."""

    status: CallStatus
    usage: Usage | None = None
    stop_reason: str = ""
    blocks: tuple[str, ...] = ()
    tools: tuple[ToolUse, ...] = ()
    #: Tokens received of an answer that was cut off, to bill it.
    received_tokens: int = 0
    #: The answer thought, or wrote nothing yet: it may have tokens that are never shown.
    has_thought: bool = False
    received_searches: int = 0
    #: For each further round of the API's own tools that has begun, the tokens that had been added
    #: to the request.
    added_by_rounds: tuple[int, ...] = ()
    failure: ModelFailed | None = None
    request_id: str = ""
    #: How the turn ends with this call; None: it may go on.
    finish: Finish | None = None


@dataclass(frozen=True, slots=True)
class ToolDone:
    """A tool's outcome: `content` is the wire text of a tool_result's content."""

    content: str
    state: Literal["ok", "error", "unknown", "denied", "cancelled"]
    details: Mapping[str, Any] = field(default_factory=dict)
    #: The call itself was invalid (no such tool, bad input), so nothing ran.
    is_wrong: bool = False


@dataclass(frozen=True, slots=True)
class Finish:
    """How the run ended, or who continues it: a person, or another worker ("running")."""

    state: Literal["done", "failed", "cancelled", "interrupted", "approval_wait", "running"]
    reason: str = ""
    code: str = ""
    text: str = ""


class Log(Protocol):
    """The conversation's log; every write is one transaction."""

    async def load(self) -> LoadedConversation: ...
    async def pins(self) -> frozenset[str | int]:
        """Return what no step may change: ids of tool calls and numbers of messages."""
        ...

    async def record(
        self, transformation: Transformation, policy: Policy, summary_call: int | None
    ) -> Veto | None:
        """Record the change, or return the veto of a receiver instead."""
        ...

    async def store_results(self, content: str) -> Message:
        """Append the results message that answers the last answer's tool calls."""
        ...


class Calls(Protocol):
    """Opens and closes calls, money included (law 5 in conversations/README.md)."""

    async def open(self, sending: Sending) -> Sent:
        """Hold the money and record the call; raises Refused or one of its kinds."""
        ...

    async def demand(self, sent: Sent) -> None:
        """Raise Refused when no call could follow this one, so that no tool runs in vain."""
        ...

    async def close(self, sent: Sent, ending: Ending) -> Message | None:
        """Settle the call and store its blocks, with the tool calls they request.

        With `ending.finish` the turn ends in the same transaction.
        """
        ...


class Model(Protocol):
    async def count(self, body: str, headers: Headers = NO_HEADERS) -> int | None:
        """Return the number of tokens of the request; None when no count is available."""
        ...

    def stream(
        self, body: str, headers: Headers = NO_HEADERS
    ) -> AsyncGenerator[Head | Piece, None]:
        """Send exactly this body under these headers; raises ModelFailed."""
        ...


class Tools(Protocol):
    async def check_calls(
        self, uses: Sequence[ToolUse]
    ) -> Mapping[str, ApprovalQuestion | ToolDone]:
        """Return which calls need approval first and which may not run; all others may."""
        ...

    async def ask(self, questions: Sequence[ApprovalQuestion]) -> None:
        """Store the questions and release the turn, in one transaction."""
        ...

    async def started(self, use: ToolUse) -> None:
        """Commit that the call is about to start, before it starts."""
        ...

    async def run(self, use: ToolUse) -> ToolDone:
        """Run the tool; an unknown tool, bad input or an exception becomes an error result."""
        ...

    async def finished(self, use: ToolUse, done: ToolDone) -> None: ...


class Display(Protocol):
    """Shows the turn to people: its state, its events, its growing text."""

    async def enter(
        self, state: str, *, attempt: int = 0, wait: float = 0.0, waits_for: str = ""
    ) -> None:
        """Enter a state; `waits_for` is the limit a minute for which a wait begins, or ends."""
        ...

    async def publish(self, *events: Event) -> None: ...
    async def hold(self, *events: Event) -> None:
        """Publish events together with the next ones, or soon by themselves."""
        ...

    async def grow(self, text: str, thinking: str) -> None: ...


class CallPorts(Protocol):
    """What one call needs to be recorded, sent and stopped."""

    @property
    def calls(self) -> Calls: ...
    @property
    def model(self) -> Model: ...
    @property
    def switch(self) -> Switch: ...
    async def open(self, sending: Sending) -> Sent:
        """Open a call; raises Refused."""
        ...


@dataclass(frozen=True, slots=True)
class Ports:
    log: Log
    calls: Calls
    model: Model
    tools: Tools
    display: Display
    switch: Switch
    #: Waits for a number of seconds; a stop interrupts it.
    pause: Callable[[float], Awaitable[object]]
    #: Returns a random number from 0 to 1, for jitter.
    chance: Callable[[], float]
    #: Returns the time in seconds since 1970.
    now: Callable[[], float]
    #: The number of the turn.
    turn: int

    async def open(self, sending: Sending) -> Sent:
        """Open a call; where a limit a minute is reached, wait for the next minute."""
        waits = 0
        while True:
            try:
                return await self.calls.open(sending)
            except RateLimitReached as reached:
                if waits == MOST_WAITS:
                    raise
                waits += 1
                await self._wait(reached, sending)

    async def _wait(self, reached: RateLimitReached, sending: Sending) -> None:
        attempt, limit = sending.attempt, reached.waits_for
        wait = reached.seconds + self.chance() * WAIT_SPREAD
        await self.display.enter("backoff", attempt=attempt, wait=wait, waits_for=limit)
        await self.publish(TurnChanged(self.turn))
        with self.switch.pausing():
            await self.pause(wait)
        await self.display.enter("running", attempt=attempt, waits_for=limit)
        if sending.opens is None:
            await self.publish(TurnChanged(self.turn))

    async def publish(self, *events: Event) -> None:
        """Publish events; a failure to do so must not end the turn."""
        try:
            await self.display.publish(*events)
        except Exception:
            logger.exception("%s was not shown", events)
