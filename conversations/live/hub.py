"""The hub of a process: what its sockets are told, and the answer on its way.

Every conversation has a topic with numbered frames of HTML, rendered once for all its sockets; a
socket reads from where it is and, when it fell behind or has just come, starts from a snapshot. The
database is the truth; a frame only says its present state, except text that grows, which a snapshot
carries as `live`.

What a turn tells has a place: its number, the generation of its lease, and a count. So words of a
worker that lost its turn are known from those of the one that has it, and words that came by the
network twice, or not at all, are known as well.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from conversations.agent.events import (
    Event,
    RoundChanged,
    RoundOpened,
    TextGrew,
    ToolMoved,
    TurnClosed,
    TurnOpened,
)
from conversations.transcript.marks import Mark
from conversations.transcript.shapes import Live

#: Frames a socket may be behind before it is given a snapshot instead.
KEPT = 400
#: Number of the turn, generation of its lease, count of what was told of it.
Place = tuple[int, int, int]
#: What a turn tells of itself until its end.
_PARTS = (RoundOpened, RoundChanged, TextGrew, ToolMoved)
#: Behind everything that is told under one lease.
OVER = 2**62


@dataclass
class Topic:
    """One conversation's frames; `position` numbers the last one.

    `lock` is held while an event is shown and while a snapshot is read, so a frame is either in a
    snapshot or behind it.
    """

    position: int = 0
    live: Live | None = None
    #: What running tools last said, as frames by the ids of their calls.
    said: dict[str, str] = field(default_factory=dict)
    #: Where the telling of a turn has come to, as far as this process knows.
    place: Place | None = None
    #: Whether words are missing here that the process of the turn has, and when it was asked.
    is_behind: bool = False
    asked: float = -math.inf
    #: The turn whose end was not told yet.
    open_turn: int = 0
    #: The last turn whose end pages were given whole: its words were in it.
    over: int = 0
    #: What all pages show for certain; None: that is not known.
    shown: Mark | None = None
    #: Turns that run here: what they told is known whole.
    turns: int = 0
    sockets: int = 0
    #: Whose conversation the sockets look at; None before the first came.
    owner: int | None = None
    #: What the browser that came last reads, for an owner who chose nothing.
    language: str = ""
    #: Sockets and running turns; a topic that nobody holds is forgotten.
    holders: int = 0
    frames: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT))
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def take(
        self, event: Event, place: Place | None, *, is_alone: bool = False
    ) -> Literal["new", "old", "gap", "missed"]:
        """Take up what a turn tells; what has no place was told by nobody's turn, and is new.

        Behind a gap, text is not taken, and a state is, but other states were "missed".
        `is_alone`: all turns run in this process, so what they told is known whole.
        """
        found: Literal["new", "missed"] = "new"
        if place is not None:
            last = self.place or (0, 0, 0)
            if place <= last:
                return "old"
            is_next = place[:2] == last[:2] and place[2] == last[2] + 1
            if place[0] <= self.over and isinstance(event, _PARTS):
                self.place = place if is_next else self.place
                return "old"
            if not is_next and isinstance(event, TextGrew | ToolMoved):
                self.is_behind = True
                return "gap"
            is_open, is_none = self.open_turn == place[0], self.open_turn == 0
            opens = is_none and isinstance(event, TurnOpened)
            # A lease begins: how far the one before it came, nobody knows who only heard of it.
            begins = place[2] == 1 and (opens or (is_open and is_alone))
            if not (begins or (is_next and (is_open or is_none))):
                found = "missed"
            self.place, self.is_behind = place, False
            if isinstance(event, TurnClosed):
                self.open_turn = 0
            elif not is_next:
                # What follows the end of a turn (the turn behind it) opens nothing.
                self.open_turn = place[0]
        elif isinstance(event, TurnClosed) and self.place and self.place[0] == event.turn:
            # Somebody else ended it: what its worker may still tell is of the past.
            self.place, self.open_turn = (*self.place[:2], OVER), 0
        self._fold(event)
        return found

    def _fold(self, event: Event) -> None:
        match event:
            case RoundOpened():
                self.live = Live(event.turn, event.round)
            case RoundChanged():
                self.live = None
            case TurnClosed() if event.turn >= (self.place or (0,))[0]:
                # Whoever died in a tool never said that it had ended. An older turn that is shown
                # anew says nothing of the one that runs.
                self.live, self.said = None, {}
            case TextGrew() if self.live is not None:
                self.live = replace(
                    self.live,
                    thinking=self.live.thinking + event.thinking,
                    closed=self.live.closed + event.closed,
                    tail=event.tail,
                )
            case _:
                pass

    def adopt(self, place: Place, live: Live | None, said: Mapping[str, str]) -> bool:
        """Take over what the process of a turn knows; gives whether it was news."""
        if place < (self.place or (0, 0, 0)) or (place == self.place and not self.is_behind):
            return False
        self.place, self.is_behind, self.live, self.said = place, False, live, dict(said)
        self.open_turn = place[0]
        return True

    def begin(self, mark: Mark | None) -> None:
        """Know of a snapshot; those of other pages come later, and show no less."""
        if self.shown is None:
            self.shown = mark
        self.past(mark)

    def past(self, mark: Mark | None) -> None:
        """Know that pages were shown every turn's end: words that come late stood in it."""
        if mark is not None and not mark.is_live:
            self.over = max(self.over, mark.leaf)
            # Where the end was never told, nobody took them back.
            self.live, self.said = None, {}

    def publish(self, frame: str) -> None:
        """Append a frame and wake the sockets."""
        self.frames.append(frame)
        self.position += 1
        news, self._news = self._news, asyncio.Event()
        news.set()

    def renew(self) -> None:
        """Have every socket take a snapshot: the frames so far do not lead to what is now."""
        self.shown = None
        self.frames.clear()
        self.publish("")
        self.frames.clear()

    def after(self, position: int) -> list[str] | None:
        """Give the frames after `position`; None when some are gone."""
        behind = self.position - position
        if behind > len(self.frames):
            return None
        return list(self.frames)[len(self.frames) - behind :]

    async def news(self, position: int) -> None:
        """Wait until there is a frame after `position`."""
        while self.position <= position:
            await self._news.wait()


class Hub:
    """The topics of a process, made on first use and dropped when nobody needs them."""

    def __init__(self) -> None:
        self._topics: dict[int, Topic] = {}

    def enter(self, conversation_id: int) -> Topic:
        """Hold a topic; each `enter` is followed by one `leave`."""
        topic = self._topics.setdefault(conversation_id, Topic())
        topic.holders += 1
        return topic

    def find(self, conversation_id: int) -> Topic | None:
        return self._topics.get(conversation_id)

    def watched(self) -> dict[int, Topic]:
        """Give the conversations that somebody has open."""
        return {key: topic for key, topic in self._topics.items() if topic.sockets}

    def watched_by(self, owner_id: int) -> list[int]:
        """Name the conversations that this person has open."""
        return [key for key, topic in self.watched().items() if topic.owner == owner_id]

    def leave(self, conversation_id: int) -> None:
        topic = self._topics[conversation_id]
        topic.holders -= 1
        if not topic.holders:
            del self._topics[conversation_id]


hub = Hub()
