"""The hub of a process: the frames for its open pages, and the text of running answers.

Pages are kept up to date by the page version alone (`log/page_version.py`). The hub has a topic for
each conversation that is open or runs in this process, with numbered frames of HTML, rendered once
for all pages; each page has a reader that knows which version it shows. A frame of stored state
carries the step of its change, from the version before to the version after:

- the reader is at the version before: the frame is sent, and the reader is at the version after;
- it is at the version after: its snapshot contained the change, so the frame is dropped;
- it is at neither: a frame was lost, and the page gets a snapshot.

So a frame that the channel layer drops is noticed at the next frame, or by the watch, which
compares the versions of all open pages with the database every few seconds (`live/watch.py`).

Streamed text commits nothing, so it has a position instead of a step: the version that opened its
round, and a count from there. A duplicate is dropped. Text after a gap is not used: this process
requests the answer so far from the process that runs the turn. `lock` is held while a snapshot is
read and while an event is shown, so a snapshot contains the text exactly up to the topic's
position.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from conversations.agent.events import Event, RoundOpened, Shows, TextGrew
from conversations.log.page_version import VersionStep
from conversations.transcript.shapes import Live

#: Unread frames that a topic keeps; a reader that is further behind gets a snapshot.
KEPT = 400
#: The position of streamed text: the version that opened its round, and a count from there.
Position = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Frame:
    """HTML for pages; `step` None: whatever version they show; `html` None: take a snapshot."""

    html: str | None
    step: VersionStep | None = None
    #: Whether pages that already show the change need the frame, because text is appended to it.
    is_base: bool = False


@dataclass
class Topic:
    """The frames and the running answer of one conversation; `position` numbers the last frame."""

    position: int = 0
    #: The running answer, and the position of its last text.
    live: Live | None = None
    text: Position = (0, 0)
    #: Text of rounds opened up to this version is stored; late pieces of it are dropped.
    stored: int = 0
    #: The newest turn; the newest version of an event; the newest version of a snapshot.
    turn: int = 0
    version: int = 0
    read: int = 0
    #: The last progress of each running tool call, as HTML by the id of the call.
    progress: dict[str, str] = field(default_factory=dict)
    #: Monotonic time at which the answer so far was last requested from its process.
    requested_at: float = -math.inf
    readers: set[Reader] = field(default_factory=set)
    #: Turns that run in this process.
    turns: int = 0
    #: The owner of the conversation; None before the first page connects.
    owner: int | None = None
    #: The language of the browser that connected last, for an owner who has chosen none.
    language: str = ""
    #: Number of `Hub.enter` calls without a `leave` yet; at 0 the topic is dropped.
    holders: int = 0
    frames: deque[Frame] = field(default_factory=lambda: deque(maxlen=KEPT))
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def is_of_the_past(self, step: VersionStep | None) -> bool:
        """Return whether a step is stale: it committed nothing and its worker has lost the turn."""
        return step is not None and step[0] == step[1] < self.text[0]

    def follow_states(
        self, events: tuple[Event, ...], step: VersionStep | None, *, is_own: bool
    ) -> None:
        """Update the state of the running answer from the events of one step."""
        opens = any(isinstance(event, RoundOpened) for event in events)
        for event in events:
            self.follow_state(event, step, is_own=is_own, opens=opens)

    def follow_state(
        self, event: Event, step: VersionStep | None, *, is_own: bool, opens: bool = False
    ) -> None:
        """Update the state of the running answer from an event.

        `is_own`: the event comes from this process, which then knows all text of the turn.
        `opens`: its step opens a round, too: what ends with it was stored before that.
        """
        if step is not None:
            self.version = max(self.version, step[1])
        turn: int = getattr(event, "turn", 0)
        if isinstance(event, RoundOpened):
            if self._is_new_round(step, is_own=is_own):
                self.live = Live(event.turn, event.round)
                self.text = (step[1] if step is not None else self.text[0] + 1), 0
        elif event.text == "ends" and turn >= self.turn:
            # An older turn that is rendered again must not affect the running one.
            self._end_text(step[1] - opens if step is not None else 0)
            if Shows.TURN in event.shows:
                # A worker that died during a tool call never published the end of the call.
                self.progress = {}
        self.turn = max(self.turn, turn)

    def _is_new_round(self, step: VersionStep | None, *, is_own: bool) -> bool:
        """Return whether an opened round has no text yet; a newer snapshot may contain some."""
        return is_own or step is None or step[1] > self.read

    def is_base(self, event: Event, step: VersionStep | None) -> bool:
        """Return whether later text is appended to this event's frame; after `follow_state`."""
        is_open = isinstance(event, RoundOpened) and self.live is not None
        return is_open and step is not None and self.text == (step[1], 0)

    def follow_text(self, event: TextGrew, at: Position) -> Literal["new", "old", "gap"]:
        """Append text if it is the next piece; "old": known already; "gap": text is missing."""
        if at <= self.text or at[0] <= self.stored:
            return "old"
        if self.live is None or at != (self.text[0], self.text[1] + 1):
            return "gap"
        self.text = at
        live = self.live
        self.live = Live(
            live.turn,
            live.round,
            live.thinking + event.thinking,
            live.closed + event.closed,
            event.tail,
        )
        return "new"

    def adopt_text(
        self, live: Live | None, at: Position, progress: Mapping[str, str], version: int
    ) -> bool:
        """Adopt the state that the turn's process sent; return whether it changed anything."""
        if version < self.stored or (live is not None and (at < self.text or at[0] <= self.stored)):
            return False
        before = self.live, self.text, self.progress
        if live is not None:
            self.live, self.text, self.turn = live, at, max(self.turn, live.turn)
        self.progress = dict(progress)
        return before != (self.live, self.text, self.progress)

    def follow_snapshot(self, version: int, turn: int, *, has_text: bool) -> None:
        """Update the state from a snapshot, which may be newer than the last event.

        `turn` is the running turn, 0: none; `has_text`: its text is not stored yet.
        """
        self.read = max(self.read, version)
        self.turn = max(self.turn, turn)
        if not turn:
            self._end_text(version)
            self.progress = {}
        elif not has_text:
            self._end_text()

    def _end_text(self, version: int = 0) -> None:
        """Mark the text as stored, by this version at the latest; late text is dropped."""
        self.live, self.stored = None, max(self.stored, self.text[0], version)

    def is_wanted(self, step: VersionStep | None, *, is_base: bool) -> bool:
        """Return whether any page needs a frame of this step, once it has read those before it."""
        shown = [reader.reach() for reader in self.readers if reader.version is not None]
        if step is None:
            return bool(shown)
        before, after = step
        has_it = before < after and not is_base
        return any(before <= version and not (has_it and after <= version) for version in shown)

    def is_behind(self, version: int) -> bool:
        """Return whether a page shows an older version than this."""
        shown = (reader.version for reader in self.readers if reader.version is not None)
        return any(one < version for one in shown)

    def publish(self, frame: Frame) -> None:
        """Append a frame and wake the readers."""
        self.frames.append(frame)
        self.position += 1
        # Who waits is woken by the first; the second is for who waits from now on.
        self._news.set()
        self._news.clear()

    def demand_version(self, version: int) -> None:
        """Make the readers that show an older version take a snapshot."""
        self.publish(Frame("", (version, version)))

    def demand_snapshots(self) -> None:
        """Make every reader take a snapshot."""
        self.publish(Frame(None))

    def drop_read(self) -> None:
        """Drop the frames that every page has read."""
        unread = (self.position - reader.position for reader in self.readers)
        most = max(unread, default=len(self.frames))
        while len(self.frames) > most:
            self.frames.popleft()

    def after(self, position: int) -> list[Frame] | None:
        """Return the frames after `position`; None when some are no longer kept."""
        behind = self.position - position
        if behind > len(self.frames):
            return None
        return list(self.frames)[len(self.frames) - behind :]

    async def wait_after(self, position: int) -> None:
        """Wait until there is a frame after `position`."""
        while self.position <= position:
            await self._news.wait()


class Reader:
    """The position of one page in a topic; `version` is None before its first snapshot."""

    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        self.position = topic.position
        self.version: int | None = None

    def begin(self, version: int) -> None:
        """Continue from a snapshot of this version, which was read under the topic's lock."""
        self.version, self.position = version, self._topic.position
        self._topic.drop_read()

    async def wait(self) -> None:
        """Wait for a frame that was not read yet."""
        await self._topic.wait_after(self.position)

    def reach(self) -> int:
        """Return the version that the page shows when it has read the frames that wait for it."""
        waiting = self._topic.after(self.position) or ()
        steps = [frame.step[1] for frame in waiting if frame.step is not None]
        return max((self.version or 0, *steps))

    def read(self) -> list[str] | None:
        """Return the HTML the page needs since the last read; None: it needs a snapshot."""
        frames = self._topic.after(self.position)
        if frames is None or self.version is None:
            return None
        found, version = [], self.version
        for frame in frames:
            if frame.step is not None:
                before, after = frame.step
                if before > version:
                    return None
                if before < after <= version and not frame.is_base:
                    continue
                version = max(version, after)
            if frame.html is None:
                return None
            if frame.html:
                found.append(frame.html)
        self.version, self.position = version, self._topic.position
        self._topic.drop_read()
        return found


class Hub:
    """The topics of a process, made on first use and dropped when nothing holds them."""

    def __init__(self) -> None:
        self._topics: dict[int, Topic] = {}

    def enter(self, conversation_id: int) -> Topic:
        """Hold a topic; each `enter` is followed by one `leave`."""
        topic = self._topics.get(conversation_id)
        if topic is None:
            topic = self._topics[conversation_id] = Topic()
        topic.holders += 1
        return topic

    def leave(self, conversation_id: int) -> None:
        topic = self._topics[conversation_id]
        topic.holders -= 1
        if not topic.holders:
            del self._topics[conversation_id]

    def find(self, conversation_id: int) -> Topic | None:
        return self._topics.get(conversation_id)

    def find_language(self, conversation_id: int) -> str | None:
        """Return the language of the conversation's open pages; None where there are none."""
        topic = self.find(conversation_id)
        return topic.language if topic is not None and topic.readers else None

    def list_open(self) -> dict[int, Topic]:
        """Return the topics with open pages, by conversation."""
        return {key: topic for key, topic in self._topics.items() if topic.readers}

    def list_open_by(self, owner_id: int) -> list[int]:
        """Return the conversations that this person has open."""
        # One pass, because it is asked several times in each turn, among all that are open.
        found = self._topics.items()
        return [key for key, topic in found if topic.owner == owner_id and topic.readers]


hub = Hub()
