"""A turn as it is seen: its state in the database, its events in the hub, its text as it grows.

The first words are shown at once, what follows is collected for a moment, a longer one where many
answers are on their way or the process is busy: finished Markdown blocks are rendered once and
appended, only the tail is rendered again. Code gets its colours as it is closed, where the process
is busy with the finished answer. Nothing is shown before there is a draft, checkpointed each half
second or 4 KB after that, so that a crash keeps what was shown; those of many answers together.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

from conversations.agent.events import Event, RoundOpened, TextGrew, ToolMoved
from conversations.agent.stop import Stopped
from conversations.claude.pace import pace
from conversations.db import run_db
from conversations.live.draft_batches import TOGETHER, keep
from conversations.live.hub import Topic, hub
from conversations.live.publish import publish, publish_spending
from conversations.live.tool_progress import Progress
from conversations.log import leases
from conversations.log.leases import Lease
from conversations.log.page_version import Step, take_step
from conversations.rendering import Incremental
from conversations.telemetry.scopes import enter_turn_scope
from conversations.turns.drafts import Checkpoint, save_draft

logger = logging.getLogger("agentweb.turns")

#: With the moment in which others join, half a second.
DRAFT_SECONDS, DRAFT_CHARACTERS = 0.5 - TOGETHER, 4_096
#: Characters rendered sooner than by a thread.
AT_ONCE = 2_000


class TurnStage:
    """The Stage port of one turn in this process."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._scope = enter_turn_scope(
            user=lease.user_id,
            conversation=lease.conversation_id,
            turn=lease.turn_id,
            generation=lease.generation,
        )
        self._topic: Topic = hub.enter(lease.conversation_id)
        self._topic.turns += 1
        pace.begin()
        #: Held while something is published, so that all hear it in one order.
        self._order = asyncio.Lock()
        #: The step of the claim, until it is published; the last one that was; where text stands.
        self._claimed, self._step, self._at = lease.step, (0, 0), (0, 0)
        self._markdown = Incremental()
        self._text, self._thinking = list[str](), list[str]()
        self._fresh_text, self._fresh_thinking = "", ""
        self._saved_length, self._length = 0, 0
        #: There are words to show; to keep; and many of those.
        self._fresh, self._shown, self._much = (asyncio.Event() for _ in range(3))
        self._regular: list[asyncio.Task[None]] = []
        #: The round whose answer is on its way, and the unfinished end of it as shown.
        self._opened: RoundOpened | None = None
        self._tail = ""
        self._moves: set[asyncio.Task[None]] = set()
        self.progress = Progress(self._moved)

    async def enter(self, state: str, *, attempt: int = 0, wait: float = 0.0) -> None:
        if state == "backoff":
            await run_db(leases.start_backoff, lease=self._lease, attempt=attempt, seconds=wait)
        elif attempt > 1:
            await run_db(leases.end_backoff, lease=self._lease, attempt=attempt)

    async def tell(self, *events: Event) -> None:
        """Show events everywhere, in order, as the step that this turn committed last."""
        async with self._order:
            if any(event.text == "ends" for event in events):
                self._end()
            await publish(self._lease.conversation_id, *events, step=self._take_step())
            for event in events:
                if isinstance(event, RoundOpened):
                    self._begin(event)
        if any(event.spends for event in events):
            await publish_spending(self._lease.user_id, but=self._lease.conversation_id)

    def _take_step(self) -> Step:
        """Return what was committed since the last event, first of all that the turn was taken."""
        step = self._claimed or take_step(self._lease.conversation_id)
        self._step, self._claimed = step or (self._step[1], self._step[1]), None
        return self._step

    def _moved(self, event: ToolMoved) -> None:
        task = asyncio.create_task(self._tell_progress(event))
        self._moves.add(task)
        task.add_done_callback(self._moves.discard)

    async def _tell_progress(self, event: ToolMoved) -> None:
        async with self._order:
            await publish(self._lease.conversation_id, event, at=(self._step[1], 0))

    @property
    def parsed(self) -> int:
        """Characters of this round that were parsed, the measure of what it costs to show."""
        return self._markdown.parsed

    def grow(self, text: str, thinking: str) -> None:
        self._fresh_text += text
        self._fresh_thinking += thinking
        self._fresh.set()

    def _begin(self, event: RoundOpened) -> None:
        self._end()
        self._opened, self._tail = event, ""
        self._at = self._step[1], 0
        self._markdown = Incremental()
        self._text, self._thinking = [], []
        self._length = self._saved_length = 0
        work = self._flush_regularly(), self._keep_regularly()
        self._regular = [asyncio.create_task(one) for one in work]

    def _end(self) -> None:
        for task in self._regular:
            task.cancel()
        self._regular = []
        for event in (self._fresh, self._shown, self._much):
            event.clear()
        self._fresh_text = self._fresh_thinking = ""
        self._opened = None

    async def _flush_regularly(self) -> None:
        while True:
            await self._fresh.wait()
            self._fresh.clear()
            try:
                await self.flush()
            except Exception:
                logger.exception("turn %s: text was not shown", self._lease.turn_id)

    async def flush(self) -> None:
        """Show what has come since the last time."""
        if self._fresh_text or self._fresh_thinking:
            async with self._order:
                await self._flush()

    async def _flush(self) -> None:
        opened = self._opened
        if opened is None:
            return
        text, self._fresh_text = self._fresh_text, ""
        thinking, self._fresh_thinking = self._fresh_thinking, ""
        self._text.append(text)
        self._thinking.append(thinking)
        self._length += len(text) + len(thinking)
        if not self._saved_length:
            try:
                await self._checkpoint(is_first=True)
            except Exception:
                # Not kept, so not shown: both with what comes next.
                self._fresh_text = self._text.pop() + self._fresh_text
                self._fresh_thinking = self._thinking.pop() + self._fresh_thinking
                self._length = 0
                raise
        elif self._length - self._saved_length >= DRAFT_CHARACTERS:
            self._much.set()
        self._shown.set()
        closed, tail = "", self._tail
        if text:
            closed, tail = await self._rendered(text)
        if thinking or closed or tail != self._tail:
            self._tail = tail
            self._at = self._at[0], self._at[1] + 1
            grown = TextGrew(opened.turn, opened.round, thinking, closed, tail)
            await publish(self._lease.conversation_id, grown, at=self._at)

    async def _rendered(self, text: str) -> tuple[str, str]:
        self._markdown.is_coloured = not pace.is_slow
        if len(text) + self._markdown.unfinished < AT_ONCE:
            return self._markdown.feed(text)
        return await asyncio.to_thread(self._markdown.feed, text)

    async def _keep_regularly(self) -> None:
        while True:
            await self._shown.wait()
            self._shown.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DRAFT_SECONDS):
                    await self._much.wait()
            self._much.clear()
            try:
                await self._checkpoint()
            except Exception:
                logger.exception("turn %s: text was not kept", self._lease.turn_id)

    async def _checkpoint(self, *, is_first: bool = False) -> None:
        """Keep what there is; the first time at once, for the words wait for it."""
        if self._length == self._saved_length:
            return
        length = self._length
        text, thinking = "".join(self._text), "".join(self._thinking)
        kept = Checkpoint(lease=self._lease, text=text, thinking=thinking)
        try:
            await (run_db(save_draft, **kept) if is_first else keep(kept))
        except Stopped:
            logger.warning("turn %s lost its lease", self._lease.turn_id)
        self._saved_length = length

    async def settle(self) -> None:
        """Keep and show no more words: the turn has its end, or is left."""
        async with self._order:
            self._end()

    def close(self) -> None:
        self._end()
        self._topic.turns -= 1
        pace.end()
        hub.leave(self._lease.conversation_id)
        self._scope.close()
