"""The queue of turns that wait for a worker: number, waiting time, and stuck turns."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Q
from django.db.models.functions import Now

from conversations.models import IS_LIVE, Turn


@dataclass(frozen=True, slots=True)
class WaitingTurns:
    """The queue of the whole site."""

    count: int
    oldest_seconds: float


def count_waiting_turns() -> WaitingTurns:
    """Return the number of queued turns and the age of the oldest, by the database's clock."""
    rows = Turn.objects.filter(IS_LIVE, state="queued")
    oldest = rows.annotate(now=Now()).order_by("created_at").values("created_at", "now").first()
    if oldest is None:
        return WaitingTurns(0, 0.0)
    return WaitingTurns(
        rows.count(), max(0.0, (oldest["now"] - oldest["created_at"]).total_seconds())
    )


def count_stuck_turns(*, waited: timedelta, silent: timedelta) -> int:
    """Count turns queued for longer than `waited`, and live ones expired for `silent`."""
    forgotten = Q(state="queued", created_at__lt=Now() - waited)
    orphaned = Q(lease_until__lt=Now() - silent)
    return Turn.objects.filter(IS_LIVE, forgotten | orphaned).count()


def read_database_time() -> datetime:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT clock_timestamp()")
            return datetime.fromisoformat(str(cursor.fetchone()[0]))
        cursor.execute("SELECT strftime('%Y-%m-%dT%H:%M:%f+00:00', 'now')")
        return datetime.fromisoformat(cursor.fetchone()[0])
