"""What `prepare` is told, what it asks, and what it gives: the conversation with the shell."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

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
    #: Summaries rejected in a row so far.
    rejected: int = 0


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
