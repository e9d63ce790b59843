"""Names what holds an event loop, since all sockets and answers of the process wait for it.

When the loop has not turned for `AGENTWEB_LOOP_BLOCK_MS`, one line says for how long and in which
function, once for each block, and the block is counted in the metric `event_loop_blocks`; the whole
stack is a line of its own at DEBUG. A thread can also hold
the loop without being in it: C code that keeps the interpreter lock, which stops this watchdog as
well. Then the thread that computed meanwhile is named instead. The cost is one wake of a thread and
one of the loop for each quarter of that time: at the default of a second 0.1 % of a core.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
from pathlib import Path

from conversations.telemetry.metrics import LOOP_BLOCKS
from tools.framework.thread_times import read_thread_time

logger = logging.getLogger("agentweb.edge")
#: Innermost frames of a stack that are logged; seconds between two logged blocks.
MOST_FRAMES, LEAST_PAUSE = 25, 10.0
#: The folder of our own code, whose functions say more than those of a library.
_OWN = Path(__file__).resolve().parents[2]


class Watchdog(threading.Thread):
    """Watches the event loop of the creating thread; `milliseconds` of 0 switch it off."""

    def __init__(self, loop: asyncio.AbstractEventLoop, milliseconds: int) -> None:
        super().__init__(name="watchdog", daemon=True)
        self._loop, self._thread = loop, threading.get_ident()
        self._most = milliseconds / 1_000
        self._beat_seconds = self._most / 4
        self._beaten = self._woken = time.monotonic()
        self._ended = threading.Event()
        #: Processor time of each thread when this one woke last.
        self._times: dict[int, float] = {}
        self._told_at, self._untold = -LEAST_PAUSE, 0
        if milliseconds > 0:
            loop.call_soon(self._beat)
        else:
            self._ended.set()

    def run(self) -> None:
        reported = 0.0
        while not self._ended.wait(self._beat_seconds):
            now, beaten = time.monotonic(), self._beaten
            is_lock_held = now - self._woken > self._most
            # A beat may have come since the lock was released, and before this thread got it.
            is_blocked = now - beaten > self._most or is_lock_held
            if is_blocked and beaten != reported:
                reported = beaten
                self._report(now - min(beaten, self._woken), is_lock_held=is_lock_held)
            self._times, self._woken = _read_processor_times(), time.monotonic()

    def stop(self) -> None:
        self._ended.set()

    def _beat(self) -> None:
        self._beaten = time.monotonic()
        self._loop.call_later(self._beat_seconds, self._beat)

    def _report(self, seconds: float, *, is_lock_held: bool) -> None:
        """Count a block, and log the stack of the thread that is to blame."""
        blamed = self._find_busiest() if is_lock_held else self._thread
        is_other = blamed != self._thread
        LOOP_BLOCKS.add(by="another thread" if is_other else "the loop")
        if time.monotonic() - self._told_at < LEAST_PAUSE:
            self._untold += 1
            return
        threads = {thread.ident: thread.name for thread in threading.enumerate()}
        frame = sys._current_frames().get(blamed)
        frames = traceback.extract_stack(frame)[-MOST_FRAMES:] if frame is not None else []
        at, own = _name_place(frames), _name_place([one for one in frames if _is_own(one)])
        fields = {
            "seconds": round(seconds, 1),
            # Where it is not the loop's: one that kept the interpreter lock.
            "thread": threads.get(blamed, "unknown") if is_other else "",
            "at": at,
            "called_by": own if own != at else "",
            "more_before": self._untold or None,
        }
        logger.error("the event loop has been busy", extra={"fields": fields})
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("its stack:\n%s", "".join(traceback.format_list(frames)))
        self._told_at, self._untold = time.monotonic(), 0

    def _find_busiest(self) -> int:
        """Return the thread that has computed most since this one woke last."""
        now = _read_processor_times()
        spent = {ident: now[ident] - self._times.get(ident, 0.0) for ident in now}
        spent.pop(threading.get_ident(), None)
        return max(spent, key=lambda ident: spent[ident], default=self._thread)


def _is_own(frame: traceback.FrameSummary) -> bool:
    path = Path(frame.filename)
    return path.is_relative_to(_OWN) and "site-packages" not in path.parts


def _name_place(frames: list[traceback.FrameSummary]) -> str:
    """Return file, line and function of the innermost frame; "" for none."""
    if not frames:
        return ""
    inner, path = frames[-1], Path(frames[-1].filename)
    shown = path.relative_to(_OWN) if _is_own(inner) else Path(*path.parts[-2:])
    return f"{shown}:{inner.lineno}:{inner.name}"


def _read_processor_times() -> dict[int, float]:
    """Return the processor time of each thread of Python by its ident."""
    return {each.ident: read_thread_time(each) for each in threading.enumerate() if each.ident}
