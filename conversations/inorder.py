"""Work that keeps its order within a line, while other lines do not wait for it.

What is heard of one conversation is shown in its order; a page that is read from the database
meanwhile must not hold up the words of all the others.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

logger = logging.getLogger("agentweb.relay")

T = TypeVar("T")


class InOrder(Generic[T]):
    """Pieces of work in lines, at most `most` at a time; what one of them raises is logged."""

    def __init__(self, do: Callable[[T], Awaitable[None]], most: int) -> None:
        self._do = do
        self._room = asyncio.Semaphore(most)
        self._lines: dict[Hashable, deque[T]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def put(self, line: Hashable, piece: T) -> None:
        """Add to the end of a line; waits only while there is no room for more."""
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
        """Leave what is not done; waits so long for what does not hear that it is to end."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
