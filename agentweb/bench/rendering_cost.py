"""What a streamed answer costs the server, next to a plain relay of the same pieces.

The answer passes through everything that a real turn uses: Markdown, frames, hub, checkpoints of
the draft, and the consumer of each tab. The relay escapes each piece and sends it to the same hub
and tabs; the difference is the cost of safe, rendered HTML. Time is processor time of all threads,
so other load matters little. The pieces are those of a slow model, which is the expensive case: a
fast one sends longer pieces and causes fewer renderings.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from django.utils.html import escape

from agentweb.bench.made_markdown import make_answer
from agentweb.bench.own_database import make_person
from conversations.agent.events import RoundOpened
from conversations.conf import conf
from conversations.db import run_db
from conversations.live.consumer import ChatConsumer
from conversations.live.hub import Frame, Reader, Topic, hub
from conversations.live.turn_stream import TurnDisplay
from conversations.log import leases
from conversations.log.leases import Lease
from conversations.turns import turns


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one answer: processor seconds to make its frames, and bytes for one tab.

    `tab_seconds` is the cost of one additional tab.
    """

    seconds: float
    tab_seconds: float
    sent: int
    frames: int


@dataclass(frozen=True, slots=True)
class Streamed:
    shape: str
    length: int
    ours: Cost
    relay: Cost
    #: Characters passed to the parser: a measure of the work without a clock.
    parsed: int

    @property
    def data(self) -> dict[str, Any]:
        each = self.length / 1_000
        return {
            "shape": self.shape,
            "characters": self.length,
            "milliseconds_per_1000": self.ours.seconds * 1e3 / each,
            "relay_milliseconds_per_1000": self.relay.seconds * 1e3 / each,
            "processor_ratio": self.ours.seconds / max(self.relay.seconds, 1e-9),
            "bytes_per_character": self.ours.sent / self.length,
            "relay_bytes_per_character": self.relay.sent / self.length,
            "bytes_ratio": self.ours.sent / self.relay.sent,
            "parsed_per_character": self.parsed / self.length,
            "frames": self.ours.frames,
            "tab_milliseconds_per_1000": self.ours.tab_seconds * 1e3 / each,
            "relay_tab_milliseconds_per_1000": self.relay.tab_seconds * 1e3 / each,
        }


async def measure(shape: str, length: int, step: int, tabs: int) -> Streamed:
    """Stream one answer of a shape to `tabs` tabs, by our live display and by the relay."""
    is_thought = shape == "thinking"
    text = make_answer(length, "markdown" if is_thought else shape)
    pieces = [text[at : at + step] for at in range(0, length, step)]
    lease = await run_db(_lease_turn)
    display = TurnDisplay(lease)
    ours = Tabs(lease.conversation_id, tabs)
    try:
        await display.publish(RoundOpened(lease.number, 1))
        ours.rewind()
        spent = 0.0
        for piece in pieces:
            began = time.process_time()
            await display.grow(*(("", piece) if is_thought else (piece, "")))
            spent += time.process_time() - began
            await ours.read()
        cost, parsed = ours.cost(spent), display.parsed
    finally:
        ours.leave()
        display.close()
    return Streamed(shape, length, cost, await _measure_relay(pieces, tabs), parsed)


async def _measure_relay(pieces: list[str], tabs: int) -> Cost:
    readers = Tabs(0, tabs)
    spent = 0.0
    try:
        for piece in pieces:
            began = time.process_time()
            target = "beforeend:#turn-1-r1-tail"
            html = f'<div hx-swap-oob="{target}">{escape(piece)}</div>'
            readers.topic.publish(Frame(html))
            spent += time.process_time() - began
            await readers.read()
        return readers.cost(spent)
    finally:
        readers.leave()


class Tabs:
    """The consumers of some tabs on one conversation, without a network."""

    def __init__(self, conversation_id: int, count: int) -> None:
        self._id, self._sent, self._frames, self._seconds = conversation_id, 0, 0, 0.0
        self.topic: Topic = hub.enter(conversation_id)
        self._tabs = [(ChatConsumer(), Reader(self.topic)) for _ in range(count)]
        for tab, reader in self._tabs:
            tab.base_send = self._take  # type: ignore[assignment]
            self.topic.readers.add(reader)
        self.rewind()

    def rewind(self) -> None:
        """Reset the counts."""
        for _, reader in self._tabs:
            reader.begin(self.topic.version)
        self._sent, self._frames, self._seconds = 0, 0, 0.0

    async def read(self) -> None:
        began = time.process_time()
        for tab, reader in self._tabs:
            await tab._send_frames(self.topic, reader)
        self._seconds += time.process_time() - began

    async def _take(self, message: dict[str, Any]) -> None:
        self._sent += len(message["text"].encode())
        self._frames += 1

    def cost(self, seconds: float) -> Cost:
        count = len(self._tabs)
        return Cost(seconds, self._seconds / count, self._sent // count, self._frames // count)

    def leave(self) -> None:
        self.topic.readers.clear()
        hub.leave(self._id)


def _lease_turn() -> Lease:
    """Start a turn and claim it, as a worker does."""
    turn = turns.start_conversation(
        owner_id=make_person(f"reader {uuid4()}").pk,
        model=conf.model,
        text="Measure this",
        client_id=uuid4(),
    )
    lease = leases.claim_turn(turn_id=turn.pk, owner="bench")
    if lease is None:
        raise RuntimeError("the turn that was just begun is taken")
    return lease
