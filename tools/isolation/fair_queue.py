"""A few threads whose work comes from many people, each of whom gets a share of them.

People who wait get a thread in turn, and one person has at most half of the threads at a time,
however much of theirs waits: another person's work finds the other half.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

_Work = tuple[Future[Any], Callable[[], Any]]


class FairQueue:
    """Runs work in at most `count` threads."""

    def __init__(self, count: int) -> None:
        self._count, self._share = count, max(1, count // 2)
        self._executor = ThreadPoolExecutor(count, thread_name_prefix="isolated")
        self._lock = threading.Lock()
        #: the work that waits by person, who waits longest first
        self._waiting: dict[str, deque[_Work]] = {}
        self._running: Counter[str] = Counter()

    def submit(self, person: str, work: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            self._waiting.setdefault(person, deque()).append((future, work))
            self._start_next()
        return future

    def _start_next(self) -> None:
        """Start what may start; the lock is held."""
        while self._running.total() < self._count:
            person = next((one for one in self._waiting if self._running[one] < self._share), None)
            if person is None:
                return
            waiting = self._waiting.pop(person)
            work = waiting.popleft()
            if waiting:
                self._waiting[person] = waiting
            self._running[person] += 1
            self._executor.submit(self._run, person, *work)

    def _run(self, person: str, future: Future[Any], work: Callable[[], Any]) -> None:
        try:
            if future.set_running_or_notify_cancel():
                try:
                    result = work()
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(result)
        finally:
            with self._lock:
                self._running[person] -= 1
                if not self._running[person]:
                    del self._running[person]
                self._start_next()
