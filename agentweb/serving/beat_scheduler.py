"""Beat's schedule, which goes on when the clock of the machine was wrong and is set back.

Celery keeps when each task was sent last, also over a restart, and waits until that time and its
interval are over. After a start with a clock of tomorrow nothing would be sent for a day.
"""

from __future__ import annotations

from typing import Any

from celery.beat import PersistentScheduler

_PersistentScheduler: Any = PersistentScheduler


class Scheduler(_PersistentScheduler):  # type: ignore[misc]
    """Counts an interval from now where the last run is in the future."""

    def tick(self, *args: Any, **kwargs: Any) -> float:
        now = self.app.now()
        ahead = [entry for entry in self.schedule.values() if entry.last_run_at > now]
        for entry in ahead:
            entry.last_run_at = now
        if ahead:
            # It is ordered by the times of the wrong clock, and made anew.
            self._heap = None
        return float(super().tick(*args, **kwargs))
