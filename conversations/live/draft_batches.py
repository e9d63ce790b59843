"""Drafts of turns that are due together are saved as one batch.

A thread, transaction and wake-up for each would cost far more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from conversations.db import run_db
from conversations.turns.drafts import Checkpoint, save_drafts

#: Seconds that the first draft of a batch waits for others.
TOGETHER = 0.1


class DraftBatches:
    """The checkpoints of one event loop that wait to be saved."""

    def __init__(self) -> None:
        self._due: list[tuple[Checkpoint, asyncio.Future[None]]] = []
        self._work: asyncio.Task[None] | None = None

    async def save(self, checkpoint: Checkpoint) -> None:
        """Save a checkpoint with the next batch, unless the caller is cancelled before.

        Raises Stopped when the lease is lost, and errors of the database.
        """
        done = asyncio.get_running_loop().create_future()
        self._due.append((checkpoint, done))
        if self._work is None:
            self._work = asyncio.create_task(self._save_batch(), name="drafts")
        await done

    async def _save_batch(self) -> None:
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


_batches: WeakKeyDictionary[asyncio.AbstractEventLoop, DraftBatches] = WeakKeyDictionary()


async def save_in_batch(checkpoint: Checkpoint) -> None:
    """Save a checkpoint in one batch with the other due ones of this event loop."""
    batches = _batches.setdefault(asyncio.get_running_loop(), DraftBatches())
    await batches.save(checkpoint)
