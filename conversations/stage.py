"""A turn as it is seen: its state in the database, its events in the hub, its text as it grows.

Text is collected and flushed about twelve times a second: finished Markdown blocks are rendered
once and appended, only the tail is rendered again. The draft is checkpointed each half second or
4 KB, so that a crash keeps what was shown.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace

from conversations import frames
from conversations.db import db
from conversations.events import (
    BudgetMoved,
    Event,
    MeterMoved,
    RoundChanged,
    RoundOpened,
    TextGrew,
    TurnClosed,
)
from conversations.hub import Live, Topic, hub
from conversations.progress import Progress
from conversations.rendering import Incremental
from conversations.services import leases
from conversations.services.drafts import save_draft
from conversations.services.leases import Lease
from conversations.switch import Stopped

logger = logging.getLogger("agentweb.turns")

FLUSH_SECONDS = 0.08
DRAFT_SECONDS, DRAFT_CHARACTERS = 0.5, 4_096


class TurnStage:
    """The Stage port of one turn in this process."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._topic: Topic = hub.enter(lease.conversation_id)
        self._markdown = Incremental()
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._fresh_text, self._fresh_thinking = "", ""
        self._saved_at, self._saved_length, self._length = time.monotonic(), 0, 0
        self._flusher: asyncio.Task[None] | None = None
        self.progress = Progress(self._topic)

    async def enter(self, state: str, *, attempt: int = 0, wait: float = 0.0) -> None:
        if state == "backoff":
            await db(leases.back_off, lease=self._lease, attempt=attempt, seconds=wait)
        elif attempt > 1:
            await db(leases.go_on, lease=self._lease, attempt=attempt)

    async def tell(self, event: Event) -> None:
        """Render the event from the database and publish it, in order."""
        async with self._topic.lock:
            if isinstance(event, RoundOpened):
                self._begin(event)
            elif isinstance(event, RoundChanged | TurnClosed):
                self._end()
            if self._topic.sockets:
                frame = await db(
                    frames.render, self._lease.conversation_id, event, self._topic.language
                )
                self._topic.publish("\n".join((frame, *self._topic.said.values())))
        if isinstance(event, MeterMoved):
            await tell_spending(self._lease.user_id, but=self._lease.conversation_id)

    @property
    def parsed(self) -> int:
        """Characters of this round that were parsed, the measure of what it costs to show."""
        return self._markdown.parsed

    def grow(self, text: str, thinking: str) -> None:
        self._fresh_text += text
        self._fresh_thinking += thinking

    def _begin(self, event: RoundOpened) -> None:
        self._end()
        self._topic.live = Live(event.turn, event.round)
        self._markdown = Incremental()
        self._text, self._thinking = [], []
        self._length = self._saved_length = 0
        self._flusher = asyncio.create_task(self._flush_regularly())

    def _end(self) -> None:
        if self._flusher is not None:
            self._flusher.cancel()
            self._flusher = None
        self._fresh_text = self._fresh_thinking = ""
        self._topic.live = None

    async def _flush_regularly(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            try:
                await self.flush()
            except Exception:
                logger.exception("turn %s: text was not shown", self._lease.turn_id)

    async def flush(self) -> None:
        """Show what has come since the last time."""
        if self._fresh_text or self._fresh_thinking:
            async with self._topic.lock:
                await self._flush()

    async def _flush(self) -> None:
        live = self._topic.live
        if live is None:
            return
        text, self._fresh_text = self._fresh_text, ""
        thinking, self._fresh_thinking = self._fresh_thinking, ""
        self._text.append(text)
        self._thinking.append(thinking)
        self._length += len(text) + len(thinking)
        closed, tail = "", live.tail
        if text:
            closed, tail = await asyncio.to_thread(self._markdown.feed, text)
        self._topic.live = replace(
            live, thinking=live.thinking + thinking, closed=live.closed + closed, tail=tail
        )
        if self._topic.sockets and (thinking or closed or tail != live.tail):
            event = TextGrew(live.turn, live.round, thinking, closed, tail)
            # No thread: it puts strings together, which takes less than going there.
            self._topic.publish(frames.text(event))
        await self._checkpoint()

    async def _checkpoint(self) -> None:
        waited = time.monotonic() - self._saved_at
        if waited < DRAFT_SECONDS and self._length - self._saved_length < DRAFT_CHARACTERS:
            return
        self._saved_at, self._saved_length = time.monotonic(), self._length
        draft = {"text": "".join(self._text), "thinking": "".join(self._thinking)}
        try:
            await db(save_draft, lease=self._lease, **draft)
        except Stopped:
            logger.warning("turn %s lost its lease", self._lease.turn_id)

    def close(self) -> None:
        self._end()
        hub.leave(self._lease.conversation_id)


async def renew(conversation_id: int) -> None:
    """Tell the sockets of this process that another path is shown."""
    topic = hub.enter(conversation_id)
    try:
        async with topic.lock:
            topic.renew()
    finally:
        hub.leave(conversation_id)


async def tell_spending(owner_id: int, but: int | None = None) -> None:
    """Tell a person's other open conversations that their budgets moved."""
    for conversation_id in hub.watched_by(owner_id):
        if conversation_id != but:
            await announce(conversation_id, BudgetMoved())


async def announce(conversation_id: int, event: Event) -> None:
    """Tell the sockets of this process of a change that no running turn of it made."""
    topic = hub.enter(conversation_id)
    try:
        async with topic.lock:
            if topic.sockets:
                topic.publish(await db(frames.render, conversation_id, event, topic.language))
    except Exception:
        logger.exception("%s was not shown", event)
    finally:
        hub.leave(conversation_id)
