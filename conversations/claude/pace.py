"""How often answers on their way are read and shown: less often each, the more of them there are.

Waking up, rendering and sending cost about the same for one word as for many, and nobody reads so
fast. What is read at this pace is shown as soon as it is read, so that words wait once. A loop that
comes back late is busy: then all wait longer, or what is late would make all else later still.
"""

from __future__ import annotations

import asyncio
import time

#: Seconds between two looks at a single answer, more for each other one, and at most where the
#: loop is busy.
_SECONDS, _MORE, _BUSY = 0.08, 0.0016, 0.5
#: How many times as long as it was late.
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
        usual = _SECONDS + _MORE * max(0, self._live - 1)
        return min(_BUSY, max(usual, self._late * _TIMES))

    @property
    def is_slow(self) -> bool:
        return self.seconds == _BUSY

    async def rest(self, since: float) -> float:
        """Wait until a look is due after one at `since`, by the loop's clock; gives when it is."""
        now = time.monotonic()
        due = max(now, since + self.seconds)
        await asyncio.sleep(due - now)
        looked = time.monotonic()
        self._late = looked - due
        return looked


pace = Pace()
