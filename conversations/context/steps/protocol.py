"""What `prepare` is told, what it asks, and what it gives: the conversation with the shell."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from conversations.context.policy.gauge import Gauge, Report
from conversations.context.steps.api_clearing import Clearing
from conversations.context.view.cost_decision import Rates
from conversations.context.view.edits import Transformation
from conversations.context.view.view import View

#: What thinking and compaction blocks are bound to once the API has refused their signatures.
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
    #: Summaries that were rejected or vetoed since the last one applied; recent ones only, so that
    #: summaries are tried again after a while. At `summary_breaker` of them none is asked for.
    rejected: int = 0
    #: Prices of the model; None: decide by tokens alone.
    rates: Rates | None = None
    #: Seconds since the last call on this view; None: not known, the cache may be warm.
    cache_age: int | None = None
    #: Seconds the API keeps a prefix in its cache.
    cache_lifetime: int = 300
    #: Whether the API clears tool results and compacts on demand for this model.
    clears: bool = False
    compacts: bool = False
    #: The model that made the compaction block in view; "" when there is none or it is not known.
    compacted_by: str = ""
    #: Ids of tool calls and numbers of messages that no step may touch.
    pins: frozenset[str | int] = frozenset()

    @property
    def is_cold(self) -> bool:
        return self.cache_age is not None and self.cache_age >= self.cache_lifetime


@dataclass(frozen=True, slots=True)
class SummaryWanted:
    """Ask the model: `system` and one user message of `text`, no tools."""

    system: str
    text: str
    max_tokens: int


@dataclass(frozen=True, slots=True)
class CountWanted:
    """Ask how many tokens a reply's request with this view has; the answer is a number or None."""

    view: View


@dataclass(frozen=True, slots=True)
class SummaryReply:
    """What the summary call gave: all its text and why it stopped."""

    text: str
    stop_reason: str


@dataclass(frozen=True, slots=True)
class CompactionWanted:
    """Ask the API to compact these messages, the first ones of what would be sent.

    The request goes out under the envelope of a reply; `tokens` is what it reads, about.
    """

    view: View
    tokens: int


@dataclass(frozen=True, slots=True)
class CompactionReply:
    """The wire text of the compaction block, "" when there is none, and why the call stopped."""

    block: str
    stop_reason: str


@dataclass(frozen=True, slots=True)
class Veto:
    """A receiver's refusal of a proposed transformation."""

    reason: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """What to send: a legal view, and how full it is.

    `clearing` is what the API is asked to clear, None for nothing; `cleared` are the ids of the
    calls whose results it then will clear.
    """

    view: View
    gauge: Gauge
    clearing: Clearing | None = None
    cleared: tuple[str, ...] = ()


EngineRequest = Transformation | SummaryWanted | CompactionWanted | CountWanted
Reply = SummaryReply | CompactionReply | Veto | int | None
Preparation = Generator[EngineRequest, Reply, Prepared]
