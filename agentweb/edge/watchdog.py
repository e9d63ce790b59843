"""Logs where the event loop is blocked, since all sockets wait for it."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback

logger = logging.getLogger("agentweb.edge")
#: Seconds for which the event loop may be blocked.
MOST_BUSY = 2.0
#: Seconds between two beats.
BEAT = 0.5


class Watchdog(threading.Thread):
    """Watches the event loop of the creating thread; logs one stack for each long block."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(name="watchdog", daemon=True)
        self._loop, self._thread = loop, threading.get_ident()
        self._beaten = time.monotonic()
        self._ended = threading.Event()
        loop.call_soon(self._beat)

    def run(self) -> None:
        reported = 0.0
        while not self._ended.wait(BEAT):
            beaten = self._beaten
            if time.monotonic() - beaten > MOST_BUSY and beaten != reported:
                reported = beaten
                self._report(time.monotonic() - beaten)

    def stop(self) -> None:
        self._ended.set()

    def _beat(self) -> None:
        self._beaten = time.monotonic()
        self._loop.call_later(BEAT, self._beat)

    def _report(self, seconds: float) -> None:
        frame = sys._current_frames().get(self._thread)
        stack = "".join(traceback.format_stack(frame)) if frame is not None else ""
        logger.error("the event loop has been busy for %.1f s with this:\n%s", seconds, stack)
