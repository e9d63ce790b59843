"""The hub of a process: what its sockets are told, and the answer on its way.

Not a channel layer, because those drop messages silently. Every conversation has a topic with
numbered frames of HTML, rendered once for all its sockets; a socket reads from where it is and,
when it fell behind or has just come, starts from a snapshot. The database is the truth; a frame
only says its present state, except text that grows, which a snapshot carries as `live`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

#: Frames a socket may be behind before it is given a snapshot instead.
KEPT = 400


@dataclass(frozen=True, slots=True)
class Live:
    """The answer on its way: finished blocks and unfinished tail as HTML, thinking as text."""

    turn: int
    round: int
    thinking: str = ""
    closed: str = ""
    tail: str = ""


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

    def publish(self, frame: str) -> None:
        """Append a frame and wake the sockets."""
        self.frames.append(frame)
        self.position += 1
        news, self._news = self._news, asyncio.Event()
        news.set()

    def renew(self) -> None:
        """Have every socket take a snapshot: the frames so far are of a path that was left."""
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

    def watched_by(self, owner_id: int) -> list[int]:
        """Name the conversations that this person has open."""
        topics = self._topics.items()
        return [key for key, topic in topics if topic.owner == owner_id and topic.sockets]

    def leave(self, conversation_id: int) -> None:
        topic = self._topics[conversation_id]
        topic.holders -= 1
        if not topic.holders:
            del self._topics[conversation_id]


hub = Hub()
