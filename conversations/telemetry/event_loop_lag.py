"""How late an event loop comes round: it beats twice a second and counts how late each beat is.

Where it hangs says agentweb.edge.watchdog; whether it beats at all decides whether its process
gives signs of life.
"""

from __future__ import annotations

import asyncio
import time

from conversations.telemetry.metrics import LOOP_LAG

#: Seconds between two beats, and those without one after which the loop hangs.
BEAT_SECONDS, HANG_SECONDS = 0.5, 5.0


class Pulse:
    """The beats of the running loop, from `start` to `stop`."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_beating(self) -> bool:
        """Say whether the loop comes round; where none was started there is none to hang."""
        return self._task is None or time.monotonic() - self._last < HANG_SECONDS

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
            LOOP_LAG.observe(max(0.0, time.monotonic() - self._last - BEAT_SECONDS))


#: That of this process.
pulse = Pulse()
