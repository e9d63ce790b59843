"""Live events: the registry of what is published to open pages.

An event names what changed. Each class says what it `shows`; rendering, publishing and the hub go
by that alone, so a new event is a class here and a template `conversations/events/<name>.html`.
A class that does not say it cannot be imported.

Web processes render an event from the database, once for all sockets. It sets regions of the page
to their present state, so one that arrives twice does no harm. Only `TextGrew` and `ToolMoved`
carry content of their own: the answer on its way is not in the database yet, how far a tool is
never will be.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import ClassVar, Literal


class Shows(Enum):
    """A region of the page that the frame of an event sets."""

    #: A turn: its prompt alone, its state line alone, or all of it.
    PROMPT = auto()
    STATUS = auto()
    TURN = auto()
    #: A round of a turn: open and without text, or as it is stored.
    OPEN_ROUND = auto()
    ROUND = auto()
    #: The context meter; budget notices, and with them the state of the composer.
    METER = auto()
    BUDGETS = auto()
    #: The model and the effort that are chosen.
    MODEL = auto()
    QUEUE = auto()
    TITLE = auto()
    #: All of it: each page takes a snapshot of its own.
    PAGE = auto()
    #: What the event itself carries; nothing is read from the database.
    OWN = auto()


#: The fields that an event needs to show a region.
_FIELDS = {
    "turn": {Shows.PROMPT, Shows.STATUS, Shows.TURN, Shows.OPEN_ROUND, Shows.ROUND},
    "round": {Shows.OPEN_ROUND, Shows.ROUND},
}
#: Every event class by its name, as it goes between processes.
EVENTS: dict[str, type[Event]] = {}


class Event:
    """A change that is published to pages; subclasses register themselves."""

    __slots__: tuple[str, ...] = ()

    shows: ClassVar[frozenset[Shows]]
    #: What becomes of the text on its way: it begins anew, grows, or is stored by now.
    text: ClassVar[Literal["", "begins", "grows", "ends"]] = ""
    #: Whether money may have moved, which the owner's other pages show, too.
    spends: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        shows = cls.__dict__.get("shows")
        if not shows:
            raise TypeError(f"{cls.__name__} does not say what it shows")
        for name, regions in _FIELDS.items():
            if shows & regions and name not in cls.__annotations__:
                raise TypeError(f"{cls.__name__} shows a {name} and does not name it")
        EVENTS[cls.__name__] = cls


@dataclass(frozen=True, slots=True)
class TurnOpened(Event):
    """A turn begins: its section appears with its prompt, and the meter counts it."""

    shows = frozenset({Shows.PROMPT, Shows.QUEUE, Shows.METER, Shows.BUDGETS})
    turn: int


@dataclass(frozen=True, slots=True)
class RoundOpened(Event):
    """A reply call begins; `round` counts from 1 within the turn."""

    shows = frozenset({Shows.OPEN_ROUND})
    text = "begins"
    turn: int
    round: int


@dataclass(frozen=True, slots=True)
class TextGrew(Event):
    """More of the running answer: thinking as text and finished blocks as HTML, both to append,
    and the unfinished tail, which replaces the one before."""

    shows = frozenset({Shows.OWN})
    text = "grows"
    turn: int
    round: int
    thinking: str
    closed: str
    tail: str


@dataclass(frozen=True, slots=True)
class RoundChanged(Event):
    """A round's answer, tool cards or markers are new in the database."""

    shows = frozenset({Shows.ROUND})
    text = "ends"
    turn: int
    round: int


@dataclass(frozen=True, slots=True)
class ToolMoved(Event):
    """A running tool reports how far it is, in words or in percent; nothing of it is stored.

    With neither, its report is taken back.
    """

    shows = frozenset({Shows.OWN})
    tool_use_id: str
    words: str
    percent: int | None


@dataclass(frozen=True, slots=True)
class TurnChanged(Event):
    """The state line of a turn is new (running, backing off, waiting), and so is the meter."""

    shows = frozenset({Shows.STATUS, Shows.METER, Shows.BUDGETS})
    spends = True
    turn: int


@dataclass(frozen=True, slots=True)
class TurnClosed(Event):
    """A turn has its final state, or its entries changed: its section is rendered once more."""

    shows = frozenset({Shows.TURN, Shows.QUEUE, Shows.METER, Shows.BUDGETS})
    text = "ends"
    spends = True
    turn: int


@dataclass(frozen=True, slots=True)
class MeterMoved(Event):
    """The context meter and the budget notices have new figures."""

    shows = frozenset({Shows.METER, Shows.BUDGETS})
    spends = True


@dataclass(frozen=True, slots=True)
class BudgetMoved(Event):
    """The budget notices are new: another conversation spent, or one was dismissed."""

    shows = frozenset({Shows.BUDGETS})


@dataclass(frozen=True, slots=True)
class QueueChanged(Event):
    """Other messages wait, or for something else."""

    shows = frozenset({Shows.QUEUE})


@dataclass(frozen=True, slots=True)
class ModelChanged(Event):
    """Another model or level answers from the next message on."""

    shows = frozenset({Shows.MODEL, Shows.METER, Shows.BUDGETS})


@dataclass(frozen=True, slots=True)
class TitleChanged(Event):
    """The conversation has another title."""

    shows = frozenset({Shows.TITLE})


@dataclass(frozen=True, slots=True)
class PathChanged(Event):
    """Another path of the log is shown."""

    shows = frozenset({Shows.PAGE})


@dataclass(frozen=True, slots=True)
class ServerLeaves(Event):
    """This server is about to stop: the page comes back, to it or to another, after a moment."""

    shows = frozenset({Shows.OWN})
