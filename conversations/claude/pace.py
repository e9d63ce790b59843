"""How often running answers are read and shown: the more of them, the less often each.

Waking up, rendering and sending cost about the same for one word as for many, and nobody reads so
fast. After each text the stream rests, and what arrives meanwhile waits in the kernel; text is
shown as soon as it is read, so it waits only once. When the event loop is late it is busy: then all
answers are read less often, or the delay would grow.
"""

from __future__ import annotations

import asyncio
import time

#: Seconds between two reads of an answer while there are few, additional seconds for each answer
#: beyond those, and the longest pause of a busy loop.
_SECONDS, _MORE, _BUSY = 0.057, 0.0016, 0.5
_FEW = 10
#: The pause is at least this multiple of the loop's delay.
_TIMES = 2


class Pace:
    """The pace of a process; `begin` and `end` are called for each answer that is shown."""

    def __init__(self) -> None:
        self._live = 0
        self._late = 0.0

    def begin(self) -> None:
        self._live += 1

    def end(self) -> None:
        self._live -= 1

    @property
    def seconds(self) -> float:
        usual = _SECONDS + _MORE * max(0, self._live - _FEW)
        return min(_BUSY, max(usual, self._late * _TIMES))

    @property
    def is_slow(self) -> bool:
        return self.seconds == _BUSY

    async def rest(self, since: float) -> None:
        """Wait until the next read after the one at `since` is due, a time as of `monotonic`."""
        now = time.monotonic()
        due = max(now, since + self.seconds)
        await asyncio.sleep(due - now)
        self._late = time.monotonic() - due


pace = Pace()
