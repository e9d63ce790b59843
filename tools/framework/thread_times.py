"""The processor time of a thread of this process."""

from __future__ import annotations

import sys
import threading
import time

#: Bits of a Linux clock id: the clock of one thread, by the scheduler's count.
_OF_THREAD, _BY_SCHEDULER = 4, 2


def read_thread_time(thread: threading.Thread) -> float:
    """Return the seconds a thread has computed; 0 when it has ended, and on other systems.

    Not by `time.pthread_getcpuclockid`, which may crash the process for a thread that just ended:
    the kernel's id of the thread gives the same clock, and an error then.
    """
    if not sys.platform.startswith("linux") or thread.native_id is None:
        return 0.0
    try:
        return time.clock_gettime((~thread.native_id << 3) | _OF_THREAD | _BY_SCHEDULER)
    except OSError:
        return 0.0
