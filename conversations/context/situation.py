"""What `prepare` is told, what it asks, and what it gives: the conversation with the shell."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

from conversations.context.decision import Rates
from conversations.context.edits import Transformation
from conversations.context.gauge import Gauge, Report
from conversations.context.view import View


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known besides the view; tokens throughout.

    `overhead` estimates system prompt and tools. `bound_to` names the envelope prefix that signed
    the thinking in view ("" when there is none), and `binding` gives the prefix that would be sent
    with or without the recall tool.
    """

    model: str
    window: int
    overhead: int
    report: Report | None
    bound_to: str
    binding: Callable[[bool], str]
    #: Summaries that were rejected or vetoed since the last one applied; recent ones only, so that
    #: summaries are tried again after a while. At `summary_breaker` of them none is asked for.
    rejected: int = 0
    #: Prices of the model; None: decide by tokens alone.
    rates: Rates | None = None
    #: Seconds since the last call on this view; None: not known, the cache may be warm.
    cache_age: int | None = None
    #: Seconds the API keeps a prefix in its cache.
    cache_lifetime: int = 300
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
class SummaryReply:
    """What the summary call gave: all its text and why it stopped."""

    text: str
    stop_reason: str


@dataclass(frozen=True, slots=True)
class Veto:
    """A receiver's refusal of a proposed transformation."""

    reason: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """What to send: a legal view, how full it is, and whether recall is offered."""

    view: View
    gauge: Gauge
    recall: bool


Wish = Transformation | SummaryWanted
Reply = SummaryReply | Veto | None
Preparation = Generator[Wish, Reply, Prepared]
