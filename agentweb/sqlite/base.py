"""SQLite where the writers of a process wait in a queue instead of polling.

SQLite allows one writer. The others poll, with sleeps of up to a tenth of a second, and whoever
polls at the right moment is next: with fifty running answers some waited seconds for transactions
of one millisecond. Here a transaction acquires a lock of its process before it begins, so the next
one begins as soon as the last one ends. Writers of other processes still poll.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import Any

from django.db import OperationalError
from django.db.backends.sqlite3 import base

#: One lock for each database of this process.
_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that holds the lock from the beginning of a transaction to its end."""

    _held: threading.Lock | None = None

    def _start_transaction_under_autocommit(self) -> None:
        lock = _locks[str(self.settings_dict["NAME"])]
        # Waits as long as SQLite itself would, and raises its message.
        if not lock.acquire(timeout=self.settings_dict["OPTIONS"].get("timeout", 5.0)):
            raise OperationalError("database is locked")
        self._held = lock
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]
        except BaseException:
            self._let_go()
            raise

    def _commit(self) -> Any:
        done = super()._commit()  # type: ignore[misc]
        # A commit that fails is rolled back next.
        self._let_go()
        return done

    def _rollback(self) -> Any:
        try:
            return super()._rollback()  # type: ignore[misc]
        finally:
            self._let_go()

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._let_go()

    def _let_go(self) -> None:
        lock, self._held = self._held, None
        if lock is not None:
            lock.release()
