"""The hub of a process: the frames its open pages get, and the answer on its way.

One mechanism keeps every page right: the page version (`log/page_version.py`). The hub has a topic
for each conversation that is open here or runs here, with numbered frames of HTML, rendered once
for all pages; each page has a reader that knows which version it shows. A frame of the database's
state carries the step of its change, from the version before to the one after:

- the reader has the version before: the frame is sent, and the page has the version after;
- it has the version after: its snapshot had all of it, so the frame is dropped;
- it has neither: something was lost on the way, and the page is given a snapshot.

So whatever the channel layer drops shows with the next frame, or with the check that compares the
versions of all open pages with the database every few seconds (`live/watch.py`).

Text on its way commits nothing. It carries the version that the opening of its round made, and
counts from there: text that comes twice is dropped, text behind a gap is not taken, and this
process asks the one that runs the turn for the answer so far. A snapshot has the text up to where
the topic is, because `lock` is held while it is read and while an event is shown.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from conversations.agent.events import Event, RoundOpened, Shows, TextGrew
from conversations.log.page_version import Step
from conversations.transcript.shapes import Live

#: Frames a reader may be behind before it is given a snapshot instead.
KEPT = 400
#: Where text stands: the version that opened its round, and a count from there.
Position = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Frame:
    """HTML for all pages; without a `step` it is for every page, without `html` a snapshot is."""

    html: str | None
    step: Step | None = None
    #: Whether pages that have the change need the frame, because text builds on it.
    is_base: bool = False


@dataclass
class Topic:
    """One conversation; `position` numbers its last frame."""

    position: int = 0
    #: The text on its way, and where it stands.
    live: Live | None = None
    text: Position = (0, 0)
    #: The version by which every text before was stored.
    stored: int = 0
    #: The newest turn heard of; the newest version heard of, and the newest of a snapshot.
    turn: int = 0
    version: int = 0
    read: int = 0
    #: What running tools last progress, as frames by the ids of their calls.
    progress: dict[str, str] = field(default_factory=dict)
    #: When the answer so far was last asked for, of the process that has it.
    requested_at: float = -math.inf
    readers: set[Reader] = field(default_factory=set)
    #: Turns that run in this process.
    turns: int = 0
    #: Whose conversation it is; None before the first page came.
    owner: int | None = None
    #: What the browser that came last reads, for an owner who chose nothing.
    language: str = ""
    #: Readers and running turns; a topic that nobody holds is forgotten.
    holders: int = 0
    frames: deque[Frame] = field(default_factory=lambda: deque(maxlen=KEPT))
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def is_of_the_past(self, step: Step | None) -> bool:
        """Say whether a step is of a worker that lost its turn: it committed nothing since."""
        return step is not None and step[0] == step[1] < self.text[0]

    def follow_state(self, event: Event, step: Step | None, *, is_own: bool) -> None:
        """Update the state of the running text by an event.

        `is_own`: it comes from this process, so what its turn publishes is known in full.
        """
        if step is not None:
            self.version = max(self.version, step[1])
        turn: int = getattr(event, "turn", 0)
        if isinstance(event, RoundOpened):
            if self._is_new_round(step, is_own=is_own):
                self.live = Live(event.turn, event.round)
                self.text = (step[1] if step is not None else self.text[0] + 1), 0
        elif event.text == "ends" and turn >= self.turn:
            # An older turn that is rendered again has no effect on the one that runs.
            self._end_text(step[1] if step is not None else 0)
            if Shows.TURN in event.shows:
                # A worker that died in a tool never published its end.
                self.progress = {}
        self.turn = max(self.turn, turn)

    def _is_new_round(self, step: Step | None, *, is_own: bool) -> bool:
        """Say whether text can begin with a round: some of it may be in a snapshot by now."""
        return is_own or step is None or step[1] > self.read

    def is_base(self, event: Event, step: Step | None) -> bool:
        """Say whether text that comes builds on the frame of this event, which was just noted."""
        is_open = isinstance(event, RoundOpened) and self.live is not None
        return is_open and step is not None and self.text == (step[1], 0)

    def follow_text(self, event: TextGrew, at: Position) -> Literal["new", "old", "gap"]:
        """Take up text, if it is the next."""
        if at <= self.text or at[0] <= self.stored:
            return "old"
        if self.live is None or at != (self.text[0], self.text[1] + 1):
            return "gap"
        self.text = at
        self.live = replace(
            self.live,
            thinking=self.live.thinking + event.thinking,
            closed=self.live.closed + event.closed,
            tail=event.tail,
        )
        return "new"

    def adopt_text(
        self, live: Live | None, at: Position, progress: Mapping[str, str], version: int
    ) -> bool:
        """Take over what the process of a turn knew at a version; False when it is known here."""
        if version < self.stored or (live is not None and (at < self.text or at[0] <= self.stored)):
            return False
        before = self.live, self.text, self.progress
        if live is not None:
            self.live, self.text, self.turn = live, at, max(self.turn, live.turn)
        self.progress = dict(progress)
        return before != (self.live, self.text, self.progress)

    def follow_snapshot(self, version: int, turn: int, *, has_text: bool) -> None:
        """Update the state by what a snapshot read: it may be ahead of what was published.

        `turn` is the one that runs, 0: none; `has_text`: the text on its way is not stored yet.
        """
        self.read = max(self.read, version)
        self.turn = max(self.turn, turn)
        if not turn:
            self._end_text(version)
            self.progress = {}
        elif not has_text:
            self._end_text()

    def _end_text(self, version: int = 0) -> None:
        """Note that the text is stored, by this version at the latest: late text is dropped."""
        self.live, self.stored = None, max(self.stored, self.text[0], version)

    def is_wanted(self, step: Step | None, *, is_base: bool) -> bool:
        """Say whether any page takes a frame of this step."""
        shown = [reader.version for reader in self.readers if reader.version is not None]
        if step is None:
            return bool(shown)
        before, after = step
        has_it = before < after and not is_base
        return any(before <= version and not (has_it and after <= version) for version in shown)

    def is_behind(self, version: int) -> bool:
        """Say whether a page shows less than this version."""
        shown = (reader.version for reader in self.readers if reader.version is not None)
        return any(one < version for one in shown)

    def publish(self, frame: Frame) -> None:
        """Append a frame and wake the readers."""
        self.frames.append(frame)
        self.position += 1
        news, self._news = self._news, asyncio.Event()
        news.set()

    def demand_version(self, version: int) -> None:
        """Have the readers that show less than a version take a snapshot."""
        self.publish(Frame("", (version, version)))

    def demand_snapshots(self) -> None:
        """Have every reader take a snapshot."""
        self.publish(Frame(None))

    def after(self, position: int) -> list[Frame] | None:
        """Return the frames after `position`; None when some are gone."""
        behind = self.position - position
        if behind > len(self.frames):
            return None
        return list(self.frames)[len(self.frames) - behind :]

    async def wait_after(self, position: int) -> None:
        """Wait until there is a frame after `position`."""
        while self.position <= position:
            await self._news.wait()


class Reader:
    """What one page was sent of a topic; `version` is None before its first snapshot."""

    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        self._position = topic.position
        self.version: int | None = None

    def begin(self, version: int) -> None:
        """Go on from a snapshot of this version, which was read under the topic's lock."""
        self.version, self._position = version, self._topic.position

    async def wait(self) -> None:
        """Wait until there is something to read."""
        await self._topic.wait_after(self._position)

    def read(self) -> list[str] | None:
        """Return what the page needs of the frames since the last time; None: a snapshot."""
        frames = self._topic.after(self._position)
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
        self.version, self._position = version, self._topic.position
        return found


class Hub:
    """The topics of a process, made on first use and dropped when nobody needs them."""

    def __init__(self) -> None:
        self._topics: dict[int, Topic] = {}

    def enter(self, conversation_id: int) -> Topic:
        """Hold a topic; each `enter` is followed by one `leave`."""
        topic = self._topics.setdefault(conversation_id, Topic())
        topic.holders += 1
        return topic

    def leave(self, conversation_id: int) -> None:
        topic = self._topics[conversation_id]
        topic.holders -= 1
        if not topic.holders:
            del self._topics[conversation_id]

    def find(self, conversation_id: int) -> Topic | None:
        return self._topics.get(conversation_id)

    def list_open(self) -> dict[int, Topic]:
        """Return the conversations that somebody has open."""
        return {key: topic for key, topic in self._topics.items() if topic.readers}

    def list_open_by(self, owner_id: int) -> list[int]:
        """Name the conversations that this person has open."""
        return [key for key, topic in self.list_open().items() if topic.owner == owner_id]


hub = Hub()
