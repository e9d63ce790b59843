"""Keeping what was shown: the checkpoints of a process that are due within a moment, in one go.

Each answer on its way has one twice a second. A thread, a transaction and a place in the loop for
each of them cost several times what is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from conversations.db import run_db
from conversations.turns.drafts import Checkpoint, save_drafts

#: Seconds for which the first one waits for others.
TOGETHER = 0.1


class Keeping:
    """The checkpoints that wait on one loop."""

    def __init__(self) -> None:
        self._due: list[tuple[Checkpoint, asyncio.Future[None]]] = []
        self._work: asyncio.Task[None] | None = None

    async def keep(self, checkpoint: Checkpoint) -> None:
        """Keep it within a moment, unless nobody waits for it by then.

        Raises Stopped when the lease is lost, and what the database raises.
        """
        done = asyncio.get_running_loop().create_future()
        self._due.append((checkpoint, done))
        if self._work is None:
            self._work = asyncio.create_task(self._keep_all(), name="keeping")
        await done

    async def _keep_all(self) -> None:
        await asyncio.sleep(TOGETHER)
        self._work = None
        due, self._due = [each for each in self._due if not each[1].done()], []
        if not due:
            return
        lost: Sequence[Exception | None]
        try:
            lost = await run_db(save_drafts, [checkpoint for checkpoint, _ in due])
        except Exception as error:
            lost = [error] * len(due)
        for (_, done), why in zip(due, lost, strict=True):
            if done.done():
                continue
            if why is None:
                done.set_result(None)
            else:
                done.set_exception(why)


_keeping: WeakKeyDictionary[asyncio.AbstractEventLoop, Keeping] = WeakKeyDictionary()


async def keep(checkpoint: Checkpoint) -> None:
    """Keep a checkpoint with the others of this loop that are due."""
    keeping = _keeping.setdefault(asyncio.get_running_loop(), Keeping())
    await keeping.keep(checkpoint)
