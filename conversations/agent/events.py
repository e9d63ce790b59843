"""Live events: the registry of what is published to open pages.

An event names what changed. Each class declares the regions it `shows`; rendering, publishing and
the hub use that declaration alone, so a new event is a class here and a template
`conversations/events/<name>.html`. A class without the declaration fails at import.

Web processes render an event from the database, once for all sockets. It sets regions of the page
to their present state, so receiving it twice is harmless. Only `TextGrew` and `ToolMoved` carry
content: the text of a running answer is not in the database yet, and the progress of a tool is
never stored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
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
    #: The context meter; the budget notices and the state of the composer.
    METER = auto()
    BUDGETS = auto()
    #: The chosen model and effort.
    MODEL = auto()
    #: Whether nothing leaves without the person.
    EGRESS = auto()
    QUEUE = auto()
    TITLE = auto()
    #: The whole page: each page requests a snapshot.
    PAGE = auto()
    #: The event's own content; nothing is read from the database.
    OWN = auto()


#: For each field, the regions for which an event needs it.
_FIELDS = {
    "turn": {Shows.PROMPT, Shows.STATUS, Shows.TURN, Shows.OPEN_ROUND, Shows.ROUND},
    "round": {Shows.OPEN_ROUND, Shows.ROUND},
}
#: Every event class by its name, which identifies it between processes.
EVENTS: dict[str, type[Event]] = {}


class Event:
    """A change that is published to pages; subclasses register themselves."""

    __slots__: tuple[str, ...] = ()

    shows: ClassVar[frozenset[Shows]]
    #: What happens to the text of the running answer: it begins, grows, or ends by being stored.
    text: ClassVar[Literal["", "begins", "grows", "ends"]] = ""
    #: Whether money may have moved; if so, the owner's other pages update their budget notices.
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
    """A turn began: shows its section with its prompt, and the meter."""

    shows = frozenset({Shows.PROMPT, Shows.QUEUE, Shows.METER, Shows.BUDGETS})
    turn: int


@dataclass(frozen=True, slots=True)
class RoundOpened(Event):
    """A reply call began; `round` counts from 1 within the turn.

    `is_plain`: no other model takes over with it.
    """

    shows = frozenset({Shows.OPEN_ROUND})
    text = "begins"
    turn: int
    round: int
    is_plain: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class TextGrew(Event):
    """More of the running answer: thinking as text and finished blocks as HTML, both to append,
    and the unfinished tail, which replaces the previous tail."""

    shows = frozenset({Shows.OWN})
    text = "grows"
    turn: int
    round: int
    thinking: str
    closed: str
    tail: str


@dataclass(frozen=True, slots=True)
class RoundChanged(Event):
    """The answer, tool cards or markers of a round changed in the database."""

    shows = frozenset({Shows.ROUND})
    text = "ends"
    turn: int
    round: int


@dataclass(frozen=True, slots=True)
class ToolMoved(Event):
    """A running tool reports its progress, in words or in percent; it is not stored.

    Without either the progress is cleared.
    """

    shows = frozenset({Shows.OWN})
    tool_use_id: str
    words: str
    percent: int | None


@dataclass(frozen=True, slots=True)
class TurnChanged(Event):
    """The state line of a turn (running, backing off, waiting) and the meter changed."""

    shows = frozenset({Shows.STATUS, Shows.METER, Shows.BUDGETS})
    spends = True
    turn: int


@dataclass(frozen=True, slots=True)
class TurnClosed(Event):
    """A turn reached its final state, or its entries changed: its section is rendered again."""

    shows = frozenset({Shows.TURN, Shows.QUEUE, Shows.METER, Shows.BUDGETS})
    text = "ends"
    spends = True
    turn: int


@dataclass(frozen=True, slots=True)
class MeterMoved(Event):
    """The figures of the context meter and of the budget notices changed."""

    shows = frozenset({Shows.METER, Shows.BUDGETS})
    spends = True


@dataclass(frozen=True, slots=True)
class BudgetMoved(Event):
    """The budget notices changed: another conversation spent, or a notice was dismissed."""

    shows = frozenset({Shows.BUDGETS})


@dataclass(frozen=True, slots=True)
class QueueChanged(Event):
    """The waiting messages changed, or what they wait for."""

    shows = frozenset({Shows.QUEUE})


@dataclass(frozen=True, slots=True)
class ModelChanged(Event):
    """The chosen model or effort changed; it applies from the next message on."""

    shows = frozenset({Shows.MODEL, Shows.METER, Shows.BUDGETS})


@dataclass(frozen=True, slots=True)
class EgressChanged(Event):
    """*Nothing leaves without me* was switched on or off for the conversation."""

    shows = frozenset({Shows.EGRESS})


@dataclass(frozen=True, slots=True)
class TitleChanged(Event):
    """The conversation's title changed."""

    shows = frozenset({Shows.TITLE})


@dataclass(frozen=True, slots=True)
class PathChanged(Event):
    """Another path of the log is shown."""

    shows = frozenset({Shows.PAGE})


@dataclass(frozen=True, slots=True)
class ChatDeleted(Event):
    """The conversation was deleted: its pages say so and lead on."""

    shows = frozenset({Shows.OWN})


@dataclass(frozen=True, slots=True)
class ServerLeaves(Event):
    """This server is about to stop: the page reconnects after a moment, to it or to another."""

    shows = frozenset({Shows.OWN})
