"""PostgreSQL connections with a timeout on the client's side, and the options of all of them.

Where a migration changes the type of a column, the server refuses what is prepared to read it until
the connection ends; so it ends with the first refusal.

`statement_timeout` is enforced by the server, so it does not help when the server itself hangs; a
stopped process still acknowledges TCP. Here the client waits slightly longer than the server's
timeout, then drops the connection, so that the request and its thread end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors

#: Server timeouts in seconds: of a statement, a wait for a lock, an idle open transaction.
STATEMENT_SECONDS, LOCK_SECONDS, IDLE_SECONDS = 10, 5, 15
#: What a page costs that is read out of order. PostgreSQL takes 4, as of a turning disk, and then
#: reads the whole table of results for the calls of three days.
RANDOM_PAGE_COST = 1.1
#: Seconds that the client waits for a response: longer than the server's statement timeout.
ANSWER_SECONDS = STATEMENT_SECONDS + 2.0
#: Most requests that wait for a connection of the pool, and for how many seconds; more fail at
#: once.
MOST_WAITING, WAITING_SECONDS = 100, 5.0


class Connection(psycopg.Connection[Any]):
    """A connection that is closed when the server does not answer in time."""

    #: None: no limit, for a migration.
    patience: float | None = ANSWER_SECONDS

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        try:
            return super().wait(gen, interval, self.patience if timeout is None else timeout)
        except errors._WaitTimeout as error:
            self.pgconn.finish()
            raise psycopg.OperationalError(
                f"the database server did not answer within {self.patience:g} seconds"
            ) from error
        except errors.FeatureNotSupported:
            self.pgconn.finish()
            raise


def make_options() -> dict[str, Any]:
    """Return the options of every connection."""
    limits = {
        "statement_timeout": STATEMENT_SECONDS,
        "lock_timeout": LOCK_SECONDS,
        "idle_in_transaction_session_timeout": IDLE_SECONDS,
    }
    return {
        "connect_timeout": 3,
        # A peer that vanished is noticed after 25 seconds, after 10 with unacknowledged data.
        "keepalives": 1,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 10_000,
        "options": " ".join(
            [
                *(f"-c {name}={seconds}s" for name, seconds in limits.items()),
                f"-c random_page_cost={RANDOM_PAGE_COST}",
            ]
        ),
    }


def make_pool(size: int) -> dict[str, Any]:
    """Return the options of a process's pool."""
    return {
        "min_size": 1,
        "max_size": size,
        "timeout": WAITING_SECONDS,
        "max_waiting": MOST_WAITING,
        "connection_class": Connection,
    }


@contextmanager
def lift_timeouts(database: Any) -> Iterator[None]:
    """Remove the timeouts of Django's connection, for a migration."""
    if database.vendor != "postgresql":
        yield
        return
    database.ensure_connection()
    _be_patient(database, None, "0")
    try:
        yield
    finally:
        if database.connection is not None:
            _be_patient(database, ANSWER_SECONDS, f"{STATEMENT_SECONDS}s")


def _be_patient(database: Any, patience: float | None, statement: str) -> None:
    database.connection.patience = patience
    with database.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, false)", [statement])
