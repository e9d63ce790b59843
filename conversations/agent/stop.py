"""The stop switch of a turn: a state that is checked, and an interruption of waits.

The turn checks for a stop between its steps; only a wait for the model, for a tool or for a pause
is also interrupted, never a write. Leaving is weaker: the turn is handed to another worker at a
point where nothing is lost, which is between two calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

#: The reason of a turn that is handed to another worker.
LEFT = "left"


class Stopped(Exception):
    """The turn was requested to stop; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Switch:
    """The stop switch of one turn; the first reason wins."""

    def __init__(self) -> None:
        self.reason = ""
        self._is_leaving = False
        #: Tasks waiting at a point where the turn may be left.
        self._pausing: set[asyncio.Task[object]] = set()
        self._waiting: set[asyncio.Task[object]] = set()
        self._woken: set[asyncio.Task[object]] = set()

    def request(self, reason: str) -> None:
        """Request a stop and wake the turn's waiting tasks; must be called on the turn's loop."""
        if self.reason:
            return
        self.reason = reason
        # The requesting task is not waiting: a cancellation would hit its next write.
        self._wake(self._waiting - {asyncio.current_task()})

    def leave(self) -> None:
        """Request that the turn be handed to another worker; interrupts a pause."""
        self._is_leaving = True
        self._wake(self._pausing & self._waiting)

    def _wake(self, tasks: set[asyncio.Task[object] | None] | set[asyncio.Task[object]]) -> None:
        """Interrupt the tasks, each once."""
        for task in tasks:
            if task is not None and task not in self._woken:
                self._woken.add(task)
                task.cancel()

    def check(self) -> None:
        """Raise Stopped once a stop was requested."""
        if self.reason:
            raise Stopped(self.reason)

    def check_leaving(self) -> None:
        """Raise Stopped if the turn is to be handed over; use it between calls, with all stored."""
        if self._is_leaving and not self.reason:
            raise Stopped(LEFT)

    @contextmanager
    def pausing(self) -> Iterator[None]:
        """Allow a stop or leave to interrupt the wait inside; raises Stopped then and on entry."""
        self.check_leaving()
        task = asyncio.current_task()
        assert task is not None  # noqa: S101
        self._pausing.add(task)
        try:
            with self.interruptible():
                yield
        finally:
            self._pausing.discard(task)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Allow a stop to interrupt the awaits inside; raises Stopped then and on entry."""
        self.check()
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  (only coroutines of a turn come here)
        self._waiting.add(task)
        try:
            yield
        except (asyncio.CancelledError, Exception) as error:
            # An interrupted wait may raise any error; the stop caused it. A cancellation by others
            # (a shutdown) is passed on.
            is_ours = task in self._woken and task.uncancel() == 0
            self._woken.discard(task)
            if is_ours:
                raise Stopped(self.reason or LEFT) from error
            raise
        finally:
            self._waiting.discard(task)
            if task in self._woken:
                self._woken.discard(task)
                task.uncancel()
