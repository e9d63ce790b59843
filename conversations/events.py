"""The closed union of what a browser can be told.

An event names what changed; the web process renders it from the database by its template
`conversations/events/<name>.html`, once for all sockets. Only `TextGrew` carries text of its own,
because the answer on its way is not in the database yet. Every other event sets a region of the
page to its present state, so one that arrives twice does no harm. That another path is shown is no
event: each page then gets a snapshot of its own, as if it had just connected.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TurnOpened:
    """A prompt was stored; the turn's section appears."""

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
class TurnChanged:
    """The state line of a turn is new: running, backing off, waiting, stopping."""

    turn: int


@dataclass(frozen=True, slots=True)
class TurnClosed:
    """The turn has its final state; its whole section is rendered once more."""

    turn: int


@dataclass(frozen=True, slots=True)
class MeterMoved:
    """The context meter and the budget pill have new figures."""


@dataclass(frozen=True, slots=True)
class QueueChanged:
    """Other messages wait, or for something else."""


@dataclass(frozen=True, slots=True)
class TitleChanged:
    """The conversation has another title."""


Event = (
    TurnOpened
    | RoundOpened
    | TextGrew
    | RoundChanged
    | TurnChanged
    | TurnClosed
    | MeterMoved
    | QueueChanged
    | TitleChanged
)
