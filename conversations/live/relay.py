"""The relay: best-effort messages between processes, over the channel layer.

Messages about one conversation keep their order and do not wait for those about another. A lost
message does no lasting harm: the next frame, or the watch, shows that a page missed something. So
sending never waits and never fails; while Redis is unavailable or too slow, messages are dropped,
which is logged once. Without REDIS_URL there is only one process, and nothing is sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Generic, TypeVar
from uuid import uuid4

from channels.layers import get_channel_layer
from django.conf import settings

logger = logging.getLogger("agentweb.relay")

T = TypeVar("T")
Message = dict[str, Any]
Hear = Callable[[Message], Awaitable[None]]
#: The group that every process is in.
ALL = "all"
#: Messages that may wait to be sent, and received ones that may wait to be handled.
MOST = 2_000
#: Messages in one round trip.
AT_ONCE = 100
#: Seconds that a round trip or joining a group may take; seconds between two attempts.
PATIENCE, PAUSE = 3.0, 1.0


def group_of(conversation_id: int) -> str:
    """Return the group of the processes in which a conversation is open."""
    return f"c.{conversation_id}"


class InOrder(Generic[T]):
    """Queues worked off in parallel, each in order, `most` pieces in all; errors are logged."""

    def __init__(self, do: Callable[[T], Awaitable[None]], most: int) -> None:
        self._do = do
        self._room = asyncio.Semaphore(most)
        self._lines: dict[Hashable, deque[T]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def put(self, line: Hashable, piece: T) -> None:
        """Append a piece to a queue; waits while `most` pieces are unfinished."""
        await self._room.acquire()
        if line in self._lines:
            self._lines[line].append(piece)
            return
        self._lines[line] = deque([piece])
        task = asyncio.create_task(self._work_off(line), name=f"line {line}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work_off(self, line: Hashable) -> None:
        pieces = self._lines[line]
        try:
            while pieces:
                piece = pieces.popleft()
                try:
                    await self._do(piece)
                except Exception:
                    logger.exception("a message of another process was not understood")
                finally:
                    self._room.release()
        finally:
            del self._lines[line]

    async def stop(self, seconds: float) -> None:
        """Cancel all work, and wait at most `seconds` for tasks that do not end at once."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)


class Relay:
    """The relay of this process: its queue of outgoing messages and its subscriptions."""

    def __init__(self) -> None:
        #: The sender's name: a process also receives its own messages, and drops them.
        self.name = uuid4().hex
        self._groups: set[str] = set()
        self._joined: set[str] = set()
        self._outgoing: asyncio.Queue[tuple[str, Message]] = asyncio.Queue(MOST)
        self._joining = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._layer: Any = None
        self._channel = ""
        #: Whether the last operation on Redis succeeded.
        self.is_good = True

    @property
    def is_open(self) -> bool:
        return self._layer is not None

    async def start(self, hear: Hear) -> None:
        """Start to send and receive; returns at once, also while Redis is unavailable."""
        if not settings.REDIS_URL or self.is_open:
            return
        self._layer = get_channel_layer()
        self._outgoing, self._joining = asyncio.Queue(MOST), asyncio.Event()
        self._groups, self._joined, self.is_good = {ALL}, set(), True
        self._joining.set()
        work = (self._send(), self._receive(hear), self._join())
        self._tasks = [asyncio.create_task(one, name="relay") for one in work]

    async def stop(self) -> None:
        """Send the waiting messages, then stop; takes a bounded time, whatever Redis does."""
        if not self.is_open:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await self._outgoing.join()
        for task in self._tasks:
            task.cancel()
        # The layer's cleanup calls Redis and ignores cancellation, so the wait is limited.
        await asyncio.wait(self._tasks, timeout=PATIENCE)
        await asyncio.wait([asyncio.create_task(self._flush())], timeout=PATIENCE)
        self._layer, self._channel, self._tasks = None, "", []

    async def _flush(self) -> None:
        with contextlib.suppress(Exception):
            await self._layer.flush()

    def send(self, group: str, message: Message) -> None:
        """Queue a message to a group; must be called on the event loop of the relay."""
        if not self.is_open:
            return
        try:
            self._outgoing.put_nowait((group, message | {"from": self.name}))
        except asyncio.QueueFull:
            self._note(is_good=False, why="more is said than can be sent")

    def join(self, group: str) -> None:
        if self.is_open:
            self._groups.add(group)
            self._joining.set()

    def leave(self, group: str) -> None:
        if self.is_open:
            self._groups.discard(group)
            self._joining.set()

    async def _send(self) -> None:
        while True:
            batch = [await self._outgoing.get()]
            while len(batch) < AT_ONCE and not self._outgoing.empty():
                batch.append(self._outgoing.get_nowait())
            try:
                async with asyncio.timeout(PATIENCE):
                    await self._layer.group_send_many(batch)
                self._note(is_good=True)
            except Exception as error:
                self._note(is_good=False, why=str(error) or type(error).__name__)
                # The messages behind it would be outdated before they arrive.
                self._forget()
                await asyncio.sleep(PAUSE)
            finally:
                for _ in batch:
                    self._outgoing.task_done()

    def _forget(self) -> None:
        while not self._outgoing.empty():
            self._outgoing.get_nowait()
            self._outgoing.task_done()

    async def _receive(self, hear: Hear) -> None:
        lines = InOrder(hear, MOST)
        try:
            await self._receive_all(lines)
        finally:
            await lines.stop(PATIENCE)

    async def _receive_all(self, lines: InOrder[Message]) -> None:
        while True:
            try:
                if not self._channel:
                    # Keep the name: it exists before the subscription, which may fail.
                    self._channel = await self._layer.new_channel("relay.")
                    self._joining.set()
                message = await self._layer.receive(self._channel)
            except Exception as error:
                # A failed message does not end the subscription of its channel.
                self._note(is_good=False, why=str(error) or type(error).__name__)
                await asyncio.sleep(PAUSE)
                continue
            if message.get("from") != self.name:
                await lines.put(message.get("conversation", message["type"]), message)

    async def _join(self) -> None:
        """Join and leave groups on Redis until they match the wanted ones."""
        while True:
            await self._joining.wait()
            self._joining.clear()
            channel = self._channel
            if not channel:
                continue
            try:
                for group in self._groups - self._joined:
                    async with asyncio.timeout(PATIENCE):
                        await self._layer.group_add(group, channel)
                    self._joined.add(group)
                for group in self._joined - self._groups:
                    async with asyncio.timeout(PATIENCE):
                        await self._layer.group_discard(group, channel)
                    self._joined.discard(group)
            except Exception as error:
                self._note(is_good=False, why=str(error) or type(error).__name__)
                await asyncio.sleep(PAUSE)
                self._joining.set()

    def _note(self, *, is_good: bool, why: str = "") -> None:
        if is_good != self.is_good:
            if is_good:
                logger.info("Redis is back")
            else:
                logger.warning("Redis: %s; pages are told late until it is back", why)
        self.is_good = is_good


relay = Relay()
