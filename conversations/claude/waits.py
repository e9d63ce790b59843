"""Deadlines for the many waits of one task, with one timer for all of them."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self


class Waits:
    """Ends a wait with TimeoutError, as `asyncio.timeout_at` does, which sets a timer for each.

    The deadline of a wait is mostly behind the one before, so a timer is left as it is until it
    comes, and is set again if that was too soon.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._due = self._set_to = 0.0
        self._timer: asyncio.TimerHandle | None = None
        #: The task, while it waits; whether its wait was ended.
        self._task: asyncio.Task[object] | None = None
        self._is_over = False

    def until(self, due: float) -> Self:
        """Set the deadline of the next wait, as a time of the loop."""
        self._due = due
        return self

    def __enter__(self) -> None:
        self._task = asyncio.current_task()
        if self._timer is None or self._due < self._set_to:
            self._set_timer()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        task, self._task = self._task, None
        if self._is_over and task is not None:
            self._is_over = False
            # Where others have cancelled the task as well, it is theirs.
            if not task.uncancel() and kind is asyncio.CancelledError:
                raise TimeoutError from error

    def _set_timer(self) -> None:
        self.close()
        self._set_to, self._timer = self._due, self._loop.call_at(self._due, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._task is None:
            return
        if self._loop.time() < self._due:
            self._set_timer()
        else:
            self._is_over = True
            self._task.cancel()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
