"""The stream of a turn to its pages: state, events, the text of the answer, tool progress.

Text is published by the task that reads it, before the next is read: no task waits for it, and how
often it is read is how often it is shown (`claude/pace.py`). Finished Markdown blocks are rendered
once and appended, only the unfinished tail is rendered again. In a busy process code is coloured
when its answer is stored. No text is published before there is a draft of it, which is saved again
while the answer grows (`draft_batches.py`).

Progress that running tools report is published and never stored. A tool may report at any rate:
its last report is kept, events are published at intervals, and none after the call has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from conversations.agent.events import Event, RoundOpened, TextGrew, ToolMoved
from conversations.claude.pace import pace
from conversations.db import run_db
from conversations.live import render
from conversations.live.draft_batches import ShownText
from conversations.live.hub import Topic, hub
from conversations.live.publish import Rendered, publish, publish_spending, publish_text
from conversations.log import leases
from conversations.log.leases import Lease
from conversations.log.page_version import VersionStep, join_steps, take_step
from conversations.rendering import Incremental, keep_streamed
from conversations.telemetry.scopes import enter_turn_scope
from tools.framework.clean_text import clean_text

if TYPE_CHECKING:
    from conversations.models import Conversation

logger = logging.getLogger("agentweb.turns")

#: Up to this many characters rendering takes less time than a switch to a thread.
AT_ONCE = 2_000
#: Seconds that the beginning of a turn, and what its tools do, wait for the call that follows, to
#: be shown together with it.
HELD_SECONDS = 0.1
#: Seconds between two progress events of a tool call; characters of one report.
PROGRESS_SECONDS, MOST_PROGRESS = 0.4, 200


class TurnDisplay:
    """The Display port of one turn that runs in this process."""

    def __init__(self, lease: Lease, language: str | None = None) -> None:
        self._lease = lease
        #: That of the pages of another process; None where it is not known that there are any.
        self._language = language
        #: Whether a call of it held anything; until one is known, what it spends may be limited.
        self.moves_budgets = True
        self._scope = enter_turn_scope(
            user=lease.user_id,
            conversation=lease.conversation_id,
            turn=lease.turn_id,
            generation=lease.generation,
        )
        self._topic: Topic = hub.enter(lease.conversation_id)
        self._topic.turns += 1
        pace.begin()
        #: Held while an event is published, so that all processes get the events in one order.
        self._order = asyncio.Lock()
        #: The claim's step until it is taken; the step taken last; the text's position.
        self._claimed, self._step, self._at = lease.step, (0, 0), (0, 0)
        self._markdown = Incremental()
        self._shown = ShownText(lease)
        self._fresh_text, self._fresh_thinking = "", ""
        #: The round whose answer is running, and its unfinished tail as published.
        self._opened: RoundOpened | None = None
        self._tail = ""
        self._moves: set[asyncio.Task[None]] = set()
        self.progress = Progress(self._moved)
        self._held = HeldEvents()

    async def enter(
        self, state: str, *, attempt: int = 0, wait: float = 0.0, waits_for: str = ""
    ) -> None:
        if state == "backoff":
            begin = partial(leases.start_backoff, seconds=wait, waits_for=waits_for)
            await run_db(begin, lease=self._lease, attempt=attempt)
        elif attempt > 1 or waits_for:
            await run_db(leases.end_backoff, lease=self._lease, attempt=attempt)

    async def hold(self, *events: Event) -> None:
        """Publish events together with the next ones, or soon by themselves."""
        if any(event.text == "ends" for event in events):
            async with self._order:
                self._end()
        step = self._take_step() if events else None
        self._held.add(events, step, self._publish_late)

    def _publish_late(self) -> None:
        self._keep_task(asyncio.create_task(self.publish()))

    def expect_next(self) -> None:
        """Let held events wait for the next ones, which are being stored."""
        self._held.expect_next()

    def render_next(self, *events: Event, conversation: Conversation) -> None:
        """Render the events that will be published next, in the thread that committed them.

        `conversation` is as that transaction left it. An error is left to their publication, which
        renders them again.
        """
        whole, language = (*self._held.events, *events), self._language
        if self._topic.readers:
            language = self._topic.language
            if any(event.text == "ends" for event in events):
                keep_streamed(self._shown.text, self._markdown)
        if language is not None:
            with contextlib.suppress(Exception):
                html = render.render_events(
                    self._lease.conversation_id,
                    *whole,
                    language=language,
                    conversation=conversation,
                )
                self._held.rendered = whole, Rendered(html, language)

    async def publish(self, *events: Event) -> None:
        """Publish events, in order, as the step that this turn committed last.

        Without events of its own it is called late, when more may have been committed: what is held
        is published as the step that it was held with, and leaves the rest to what shows that.
        """
        async with self._order:
            step = self._take_step() if events else None
            events, step, rendered = self._held.take(events, step)
            if not events:
                return
            if any(event.text == "ends" for event in events):
                self._end()
            await publish(self._lease.conversation_id, *events, step=step, rendered=rendered)
            for event in events:
                if isinstance(event, RoundOpened):
                    self._begin(event)
        if self.moves_budgets and any(event.spends for event in events):
            await publish_spending(self._lease.user_id, but=self._lease.conversation_id)

    def _take_step(self) -> VersionStep:
        """Return the step committed since the last event; the first one begins with the claim."""
        step = join_steps(self._claimed, take_step(self._lease.conversation_id))
        self._claimed = None
        self._step = step or (self._step[1], self._step[1])
        return self._step

    def _moved(self, event: ToolMoved) -> None:
        self._keep_task(asyncio.create_task(self._publish_progress(event)))

    def _keep_task(self, task: asyncio.Task[None]) -> None:
        self._moves.add(task)
        task.add_done_callback(self._end_task)

    def _end_task(self, task: asyncio.Task[None]) -> None:
        self._moves.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            turn = self._lease.turn_id
            logger.error("turn %s: a change was not shown", turn, exc_info=error)

    async def _publish_progress(self, event: ToolMoved) -> None:
        # Before it what is held, with which the tool is shown first.
        await self.publish()
        async with self._order:
            await publish(self._lease.conversation_id, event, at=(self._step[1], 0))

    @property
    def parsed(self) -> int:
        """Characters parsed in this round: a measure of the work that needs no clock."""
        return self._markdown.parsed

    async def grow(self, text: str, thinking: str) -> None:
        """Publish text that has arrived; what cannot be shown now is shown with the next."""
        self._fresh_text += text
        self._fresh_thinking += thinking
        try:
            async with self._order:
                await self._show_fresh()
        except Exception:
            logger.exception("turn %s: text was not shown", self._lease.turn_id)

    def _begin(self, event: RoundOpened) -> None:
        self._end()
        self._opened, self._tail = event, ""
        self._at = self._step[1], 0
        self._markdown, self._shown = Incremental(), ShownText(self._lease)

    def _end(self) -> None:
        self._shown.end()
        self._fresh_text = self._fresh_thinking = ""
        self._opened = None

    async def _show_fresh(self) -> None:
        opened = self._opened
        if opened is None:
            return
        text, self._fresh_text = self._fresh_text, ""
        thinking, self._fresh_thinking = self._fresh_thinking, ""
        try:
            await self._shown.add(text, thinking)
        except Exception:
            # Text that is not saved is not published: both happen with the next text.
            self._fresh_text = text + self._fresh_text
            self._fresh_thinking = thinking + self._fresh_thinking
            raise
        closed, tail = "", self._tail
        if text:
            closed, tail = await self._render(text)
        if thinking or closed or tail != self._tail:
            self._tail = tail
            self._at = self._at[0], self._at[1] + 1
            grown = TextGrew(opened.turn, opened.round, thinking, closed, tail)
            await publish_text(self._topic, self._lease.conversation_id, grown, self._at)

    async def _render(self, text: str) -> tuple[str, str]:
        self._markdown.is_coloured = not pace.is_slow
        if len(text) + self._markdown.unfinished < AT_ONCE:
            return self._markdown.feed(text)
        return await asyncio.to_thread(self._markdown.feed, text)

    async def settle(self) -> None:
        """Stop publishing and saving text, when the turn has ended or is given up."""
        async with self._order:
            self._end()

    def close(self) -> None:
        self._end()
        self._held.take()
        # It refers to this display. Two that refer to each other stay in memory until the next full
        # collection, and with them the whole answer and what it was parsed to.
        del self.progress
        self._topic.turns -= 1
        pace.end()
        hub.leave(self._lease.conversation_id)
        self._scope.close()


class HeldEvents:
    """Events of a turn that wait for the next ones, to be published together with them."""

    def __init__(self) -> None:
        self.events: tuple[Event, ...] = ()
        #: What was committed before they were held.
        self.step: VersionStep | None = None
        #: The next events as they were rendered right after their commit.
        self.rendered: tuple[tuple[Event, ...], Rendered] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def add(
        self, events: tuple[Event, ...], step: VersionStep | None, publish: Callable[[], None]
    ) -> None:
        """Hold events; `publish` is called unless the next ones come soon after the first.

        An event that is held already shows what the database holds when it is published.
        """
        self.events = tuple(dict.fromkeys((*self.events, *events)))
        self.step = join_steps(self.step, step)
        if self.events and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(HELD_SECONDS, publish)

    def expect_next(self) -> None:
        """Let the held events wait for the next ones, however long these take."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def take(
        self, events: tuple[Event, ...] = (), step: VersionStep | None = None
    ) -> tuple[tuple[Event, ...], VersionStep | None, Rendered | None]:
        """Return the held events with these behind them, their step, and their HTML if rendered."""
        self.expect_next()
        whole, step, rendered = (*self.events, *events), join_steps(self.step, step), self.rendered
        self.events, self.step, self.rendered = (), None, None
        return whole, step, rendered[1] if rendered is not None and rendered[0] == whole else None


class Progress:
    """Progress of a turn's tool calls; `publish` is called on the loop of the constructor."""

    def __init__(self, publish: Callable[[ToolMoved], None]) -> None:
        self._publish, self._loop = publish, asyncio.get_running_loop()
        self._running: set[str] = set()
        self._latest: dict[str, str | float] = {}
        self._due: set[str] = set()
        self._published: set[str] = set()

    def begin(self, tool_use_id: str) -> Callable[[str | float], None]:
        """Return a call's function to report progress: a text, or a share from 0 to 1."""
        self._running.add(tool_use_id)
        return partial(self._take, tool_use_id)

    def end(self, tool_use_id: str) -> None:
        self._running.discard(tool_use_id)
        self._latest.pop(tool_use_id, None)
        if tool_use_id in self._published:
            self._published.discard(tool_use_id)
            self._publish(ToolMoved(tool_use_id, "", None))

    def _take(self, tool_use_id: str, progress: str | float) -> None:
        if tool_use_id in self._running:
            self._latest[tool_use_id] = progress
            if tool_use_id not in self._due:
                self._due.add(tool_use_id)
                self._loop.call_soon_threadsafe(self._show, tool_use_id)

    def _show(self, tool_use_id: str) -> None:
        self._due.discard(tool_use_id)
        progress = self._latest.pop(tool_use_id, None)
        if progress is None or tool_use_id not in self._running:
            return
        self._published.add(tool_use_id)
        self._publish(_read_progress(tool_use_id, progress))
        self._due.add(tool_use_id)
        self._loop.call_later(PROGRESS_SECONDS, self._show, tool_use_id)


def _read_progress(tool_use_id: str, progress: str | float) -> ToolMoved:
    if isinstance(progress, str):
        return ToolMoved(
            tool_use_id,
            " ".join(clean_text(progress[: 2 * MOST_PROGRESS]).split())[:MOST_PROGRESS],
            None,
        )
    # A number outside 0 to 1 is shown as 0 or 100 %; NaN as 0.
    share = 0.0 if math.isnan(progress) else min(max(progress, 0.0), 1.0)
    return ToolMoved(tool_use_id, "", round(100 * share))
