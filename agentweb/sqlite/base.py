"""SQLite where the writers of a process wait in a queue instead of polling.

SQLite allows one writer. The others poll, with sleeps of up to a tenth of a second, and whoever
polls at the right moment is next: with fifty running answers some waited seconds for transactions
of one millisecond. Here a transaction acquires a lock of its process before it begins, so the next
one begins as soon as the last one ends, and so does a statement that writes without one: of 200
people who asked within a second, each first words of an answer polled for 45 ms until their draft
was saved, in one of the few threads that all turns share. Writers of other processes still poll.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from functools import partial
from typing import Any

from django.db import OperationalError
from django.db.backends.sqlite3 import base

#: One lock for each database of this process.
_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


#: The first words of statements that write.
_WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that holds the lock from the beginning of a transaction to its end."""

    _held: threading.Lock | None = None

    def create_cursor(self, name: str | None = None) -> Any:
        return self.connection.cursor(factory=partial(_Cursor, self))

    def wait_to_write(self, statement: str) -> bool:
        """Acquire the lock for a statement that needs it; return whether it is to be released."""
        if self._held is not None or not statement.lstrip().startswith(_WRITES):
            return False
        self._acquire()
        return True

    def _acquire(self) -> None:
        lock = _locks[str(self.settings_dict["NAME"])]
        # Waits as long as SQLite itself would, and raises its message.
        if not lock.acquire(timeout=self.settings_dict["OPTIONS"].get("timeout", 5.0)):
            raise OperationalError("database is locked")
        self._held = lock

    def _start_transaction_under_autocommit(self) -> None:
        self._acquire()
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]
        except BaseException:
            self.let_go()
            raise

    def _commit(self) -> Any:
        done = super()._commit()  # type: ignore[misc]
        # A commit that fails is rolled back next.
        self.let_go()
        return done

    def _rollback(self) -> Any:
        try:
            return super()._rollback()  # type: ignore[misc]
        finally:
            self.let_go()

    def close(self) -> None:
        try:
            super().close()
        finally:
            self.let_go()

    def let_go(self) -> None:
        lock, self._held = self._held, None
        if lock is not None:
            lock.release()


class _Cursor(base.SQLiteCursorWrapper):
    def __init__(self, database: DatabaseWrapper, connection: Any) -> None:
        super().__init__(connection)
        self._database = database

    def execute(self, query: str, params: Any = None) -> Any:
        is_held = self._database.wait_to_write(query)
        try:
            return super().execute(query, params)
        finally:
            if is_held:
                self._database.let_go()

    def executemany(self, query: str, param_list: Any) -> Any:
        is_held = self._database.wait_to_write(query)
        try:
            return super().executemany(query, param_list)
        finally:
            if is_held:
                self._database.let_go()
