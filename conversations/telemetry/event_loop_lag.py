"""The lag of an event loop: a heartbeat twice a second, whose delays are recorded.

`agentweb.edge.watchdog` logs where a loop hangs. A process reports itself as alive only while its
loop beats.
"""

from __future__ import annotations

import asyncio
import time

from conversations.telemetry.metrics import LOOP_LAG

#: Seconds between two beats, and seconds without one after which the loop counts as hung.
BEAT_SECONDS, HANG_SECONDS = 0.5, 5.0
#: Seconds by which the last beat of a busy loop was late.
BUSY_SECONDS = 0.1


class Pulse:
    """The heartbeat of the running loop, from `start` to `stop`."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._lag = 0.0
        self._task: asyncio.Task[None] | None = None

    @property
    def is_beating(self) -> bool:
        """Return whether the last beat is recent; True where no pulse was started."""
        return self._task is None or time.monotonic() - self._last < HANG_SECONDS

    @property
    def is_busy(self) -> bool:
        """Return whether the last beat was late, or is by now; False where no pulse was started."""
        late = time.monotonic() - self._last - BEAT_SECONDS
        return self._task is not None and max(late, self._lag) > BUSY_SECONDS

    def start(self) -> None:
        self._last = time.monotonic()
        self._task = asyncio.create_task(self._go_on(), name="pulse")

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _go_on(self) -> None:
        while True:
            self._last = time.monotonic()
            await asyncio.sleep(BEAT_SECONDS)
            self._lag = max(0.0, time.monotonic() - self._last - BEAT_SECONDS)
            LOOP_LAG.observe(self._lag)


#: The pulse of this process.
pulse = Pulse()
