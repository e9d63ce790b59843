"""Drafts of running answers, those of all answers of a process saved together.

A thread, transaction and wake-up for each answer would cost far more. No text is shown before there
is a draft of its answer; what is shown after that is in the draft `DRAFT_SECONDS` later, or soon
when it is much, so that a crash keeps it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from weakref import WeakKeyDictionary

from conversations.agent.stop import Stopped
from conversations.db import run_db, run_db_soon
from conversations.log.leases import Lease
from conversations.turns.drafts import Checkpoint, save_draft, save_drafts

logger = logging.getLogger("agentweb.turns")
#: Seconds after which shown text is saved, and those after which this much of it is, in characters.
DRAFT_SECONDS, SOON = 0.5, 0.1
DRAFT_CHARACTERS = 4_096


class ShownText:
    """The text and thinking of one running answer that were shown, and whose draft is kept."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._text, self._thinking = list[str](), list[str]()
        #: Characters that were shown, that are saved, and that are being saved.
        self._length = self._saved_length = self._saving_length = 0
        self._is_over = False
        self._batches = _batches.setdefault(asyncio.get_running_loop(), DraftBatches())

    @property
    def text(self) -> str:
        return "".join(self._text)

    async def add(self, text: str, thinking: str) -> None:
        """Add what may be shown when this returns; raises errors of saving the first of it."""
        if not self._length:
            try:
                await run_db_soon(save_draft, lease=self._lease, text=text, thinking=thinking)
            except Stopped:
                self._warn()
            self._saved_length = len(text) + len(thinking)
        self._text.append(text)
        self._thinking.append(thinking)
        self._length += len(text) + len(thinking)
        self._expect_saving()

    def take_checkpoint(self) -> Checkpoint:
        """Return what is to be saved; the next is taken when `end_saving` was called."""
        self._saving_length = self._length
        return Checkpoint(lease=self._lease, text=self.text, thinking="".join(self._thinking))

    def end_saving(self, error: Exception | None) -> None:
        length, self._saving_length = self._saving_length, 0
        if isinstance(error, Stopped):
            self._warn()
        elif error is not None and not self._is_over:
            logger.error("turn %s: text was not kept", self._lease.turn_id, exc_info=error)
            length = self._saved_length
        self._saved_length = length
        self._expect_saving()

    def end(self) -> None:
        """Save nothing any more: the answer is stored, or given up."""
        self._is_over = True
        self._batches.remove(self)

    def _expect_saving(self) -> None:
        unsaved = self._length - self._saved_length
        if unsaved and not (self._saving_length or self._is_over):
            self._batches.add(self, is_much=unsaved >= DRAFT_CHARACTERS)

    def _warn(self) -> None:
        logger.warning("turn %s lost its lease", self._lease.turn_id)


class DraftBatches:
    """The answers of one event loop that have shown what is not saved."""

    def __init__(self) -> None:
        self._due: dict[ShownText, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._is_soon = False
        self._work: set[asyncio.Task[None]] = set()

    def add(self, shown: ShownText, *, is_much: bool) -> None:
        """Save a text with the next batch, and have that soon if it is much."""
        self._due[shown] = None
        if self._timer is None or (is_much and not self._is_soon):
            if self._timer is not None:
                self._timer.cancel()
            self._is_soon = is_much
            seconds = SOON if is_much else DRAFT_SECONDS
            self._timer = asyncio.get_running_loop().call_later(seconds, self._begin)

    def remove(self, shown: ShownText) -> None:
        self._due.pop(shown, None)
        if not self._due and self._timer is not None:
            # The next text has its own time: most short answers end before theirs.
            self._timer.cancel()
            self._timer, self._is_soon = None, False

    def _begin(self) -> None:
        due, self._due, self._timer, self._is_soon = self._due, {}, None, False
        if due:
            task = asyncio.create_task(_save_batch(due), name="drafts")
            self._work.add(task)
            task.add_done_callback(self._work.discard)


async def _save_batch(due: Iterable[ShownText]) -> None:
    checkpoints = [shown.take_checkpoint() for shown in due]
    errors: list[Exception | None]
    try:
        errors = [*await run_db(save_drafts, checkpoints)]
    except Exception as error:
        errors = [error] * len(checkpoints)
    for shown, why in zip(due, errors, strict=True):
        shown.end_saving(why)


_batches: WeakKeyDictionary[asyncio.AbstractEventLoop, DraftBatches] = WeakKeyDictionary()
