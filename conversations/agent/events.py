"""The closed union of what a browser can be told.

An event names what changed; the web process renders it from the database by its template
`conversations/events/<name>.html`, once for all sockets. Only `TextGrew` and `ToolMoved` carry text
of their own: the answer on its way is not in the database yet, how far a tool is never will be.
Every other event sets a region of the page to its present state, so one that arrives twice does no
harm. That another path is shown is no event: each page then gets a snapshot of its own, as if it
had just connected.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TurnOpened:
    """A prompt was stored; the turn's section appears, and the meter with the prompt in it."""

    turn: int


@dataclass(frozen=True, slots=True)
class RoundOpened:
    """A reply call begins; `round` counts from 1 within the turn."""

    turn: int
    round: int


@dataclass(frozen=True, slots=True)
class TextGrew:
    """More of the running answer: thinking as text and finished blocks as HTML, both to append,
    and the unfinished tail, which replaces the one before."""

    turn: int
    round: int
    thinking: str
    closed: str
    tail: str


@dataclass(frozen=True, slots=True)
class RoundChanged:
    """A round's answer, tool cards or markers are new in the database."""

    turn: int
    round: int


@dataclass(frozen=True, slots=True)
class ToolMoved:
    """A running tool said how far it is, in words or in percent; nothing of it is stored.

    With neither, it says nothing any more.
    """

    tool_use_id: str
    words: str
    percent: int | None


@dataclass(frozen=True, slots=True)
class TurnChanged:
    """The state line of a turn is new (running, backing off, waiting), and so is the meter."""

    turn: int


@dataclass(frozen=True, slots=True)
class TurnClosed:
    """The turn has its final state; its whole section is rendered once more, and the meter."""

    turn: int


@dataclass(frozen=True, slots=True)
class MeterMoved:
    """The context meter has new figures, and so has what is said of budgets."""


@dataclass(frozen=True, slots=True)
class BudgetMoved:
    """What is said of budgets is new: another conversation spent, or a notice was put away."""


@dataclass(frozen=True, slots=True)
class QueueChanged:
    """Other messages wait, or for something else."""


@dataclass(frozen=True, slots=True)
class TitleChanged:
    """The conversation has another title."""


@dataclass(frozen=True, slots=True)
class ServerLeaves:
    """This server is about to stop: the page comes back, to it or to another, after a moment."""


Event = (
    TurnOpened
    | RoundOpened
    | TextGrew
    | RoundChanged
    | ToolMoved
    | TurnChanged
    | TurnClosed
    | MeterMoved
    | BudgetMoved
    | QueueChanged
    | TitleChanged
    | ServerLeaves
)
