"""The protocol of `prepare`: its input, its requests to the caller, and its result."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from conversations.context.policy.continuation import EVEN, Continuation
from conversations.context.policy.gauge import Gauge, Report
from conversations.context.steps.api_clearing import Clearing
from conversations.context.view.cache_breakpoints import SECONDS, Lifetime
from conversations.context.view.cost_decision import Rates
from conversations.context.view.edits import Transformation
from conversations.context.view.view import View

#: Stands for the binding of thinking and compaction blocks whose signatures the API refused.
REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known besides the view; sizes in tokens.

    `overhead` estimates system prompt and tools. `bound_to` names the envelope prefix that signed
    the thinking in view ("" if there is none), and `binding` the one that would be sent.
    """

    model: str
    window: int
    overhead: int
    report: Report | None
    bound_to: str
    binding: str
    #: Recent summaries that were rejected or vetoed since the last applied one; old ones do not
    #: count, so summaries are tried again. From `summary_breaker` of them on none is requested.
    rejected: int = 0
    #: Prices of the model; None: decide by tokens alone.
    rates: Rates | None = None
    #: Prices of the model that writes summaries; None: those of the model.
    summary_rates: Rates | None = None
    #: Seconds since the last call on this view; None: unknown, so the cache may be warm.
    cache_age: int | None = None
    #: Seconds after the last call for which the API keeps most of what it read and wrote.
    cache_lifetime: int = SECONDS["5m"]
    #: Tokens at the beginning of the last request that are kept for an hour; 0: none.
    hour_tokens: int = 0
    #: The number of the first message that was changed since the last request; None: none was.
    edited_from: int | None = None
    #: Seconds between the last turns of this conversation.
    pauses: tuple[int, ...] = ()
    #: Calls that this conversation has made for its answers, and how long conversations continue.
    calls: int = 0
    continuation: Continuation = EVEN
    #: The size of the view at the last rejected summary; 0: none since the last applied one.
    rejected_at: int = 0
    #: Whether the API clears tool results and compacts on demand for this model.
    clears: bool = False
    compacts: bool = False
    #: The model that made the compaction block in view; "" when there is none or it is unknown.
    compacted_by: str = ""
    #: Ids of tool calls and numbers of messages that no step may touch.
    pins: frozenset[str | int] = frozenset()
    #: Decisions of people on tool calls, as (call id, verdict).
    decisions: tuple[tuple[str, str], ...] = ()

    @property
    def is_cold(self) -> bool:
        return self.cache_age is not None and self.cache_age >= self.cache_lifetime

    @property
    def expected_calls(self) -> int:
        return self.continuation.expect_calls(self.calls)


@dataclass(frozen=True, slots=True)
class SummaryEffect:
    """Estimated tokens: what a summary frees, what is rewritten behind it, what its calls read."""

    freed: int
    rewritten: int
    read: int


@dataclass(frozen=True, slots=True)
class SummaryWanted:
    """Request a text from the model: `system` and one user message of `text`, no tools.

    With `continued` the request goes on from the conversation instead.
    """

    system: str
    text: str
    max_tokens: int
    #: Names without which the text is rejected.
    keep: tuple[str, ...] = ()
    #: The numbers to weigh it by before it is requested; None if it was weighed already.
    effect: SummaryEffect | None = None
    #: Messages of the view behind those that it replaces; None: it needs a prompt of its own.
    behind: int | None = None
    #: The messages to send instead, with a reply's envelope (`steps/summary_call.py`), and how many
    #: of their tokens the prompt cache returns.
    continued: View | None = None
    cached: int = 0


@dataclass(frozen=True, slots=True)
class CountWanted:
    """Request the token count of a reply's request with this view; the reply is int or None."""

    view: View


@dataclass(frozen=True, slots=True)
class SummaryReply:
    """The summary call's answer: all its text and the stop reason."""

    text: str
    stop_reason: str


@dataclass(frozen=True, slots=True)
class CompactionWanted:
    """Request that the API compact these messages, the first ones of the next request.

    The request uses a reply's envelope; `tokens` is the approximate size of its input.
    """

    view: View
    tokens: int


@dataclass(frozen=True, slots=True)
class CompactionReply:
    """The wire text of the compaction block, "" when there is none, and the stop reason."""

    block: str
    stop_reason: str


@dataclass(frozen=True, slots=True)
class Veto:
    """A receiver's refusal of a proposed transformation."""

    reason: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """What to send: a legal view, and how full it is.

    `clearing` are the API's clearing parameters, None for none; `cleared` are the ids of the calls
    whose results it will then clear.
    """

    view: View
    gauge: Gauge
    clearing: Clearing | None = None
    cleared: tuple[str, ...] = ()
    #: How long the API should keep what it caches of the request.
    lifetime: Lifetime = "5m"


EngineRequest = Transformation | SummaryWanted | CompactionWanted | CountWanted
Reply = SummaryReply | CompactionReply | Veto | int | None
Preparation = Generator[EngineRequest, Reply, Prepared]
