"""The protocol of `prepare`: its input, what it requests on the way, and its result."""

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

#: The binding of thinking and compaction blocks after the API refused their signatures.
REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known besides the view; tokens throughout.

    `overhead` estimates system prompt and tools. `bound_to` names the envelope prefix that signed
    the thinking in view ("" when there is none), and `binding` the one that would be sent.
    """

    model: str
    window: int
    overhead: int
    report: Report | None
    bound_to: str
    binding: str
    #: Summaries rejected or vetoed since the last one applied; recent ones only, so that summaries
    #: are tried again after a while. At `summary_breaker` of them none is requested.
    rejected: int = 0
    #: Prices of the model; None: decide by tokens alone.
    rates: Rates | None = None
    #: Seconds since the last call on this view; None: unknown, the cache may be warm.
    cache_age: int | None = None
    #: Seconds for which the API keeps what the last call cached.
    cache_lifetime: int = SECONDS["5m"]
    #: Seconds between the last turns of this conversation.
    pauses: tuple[int, ...] = ()
    #: Calls that this conversation has made for its answers, and how such conversations go on.
    calls: int = 0
    continuation: Continuation = EVEN
    #: The figure at which the last summary was rejected; 0: none was, since the last one applied.
    rejected_at: int = 0
    #: Whether the API clears tool results and compacts on demand for this model.
    clears: bool = False
    compacts: bool = False
    #: The model that made the compaction block in view; "" when there is none or it is unknown.
    compacted_by: str = ""
    #: Ids of tool calls and numbers of messages that no step may touch.
    pins: frozenset[str | int] = frozenset()
    #: What people decided on tool calls, as (id of the call, verdict).
    decisions: tuple[tuple[str, str], ...] = ()

    @property
    def is_cold(self) -> bool:
        return self.cache_age is not None and self.cache_age >= self.cache_lifetime

    @property
    def expected_calls(self) -> int:
        return self.continuation.expect_calls(self.calls)


@dataclass(frozen=True, slots=True)
class SummaryWanted:
    """Request a text of the model: `system` and one user message of `text`, no tools."""

    system: str
    text: str
    max_tokens: int
    #: Names without which the text is rejected.
    keep: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CountWanted:
    """Request the number of tokens of a reply's request with this view; answered int or None."""

    view: View


@dataclass(frozen=True, slots=True)
class SummaryReply:
    """The summary call's answer: all its text and the stop reason."""

    text: str
    stop_reason: str


@dataclass(frozen=True, slots=True)
class CompactionWanted:
    """Request that the API compact these messages, the first ones of what would be sent.

    The request uses a reply's envelope; `tokens` is about what it reads.
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
    whose results it then will clear.
    """

    view: View
    gauge: Gauge
    clearing: Clearing | None = None
    cleared: tuple[str, ...] = ()
    #: How long the API shall keep what it caches of it.
    lifetime: Lifetime = "5m"


EngineRequest = Transformation | SummaryWanted | CompactionWanted | CountWanted
Reply = SummaryReply | CompactionReply | Veto | int | None
Preparation = Generator[EngineRequest, Reply, Prepared]
