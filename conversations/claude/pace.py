"""How often running answers are read and shown: the more of them, the less often each.

Waking up, rendering and sending cost about the same for one word as for many, and nobody reads so
fast. After each text the stream rests, and what arrives meanwhile waits in the kernel; text is
shown as soon as it is read, so it waits only once. Answers are read at the same moments: what is
due together wakes the event loop once, and what one answer takes is at hand for the next. So the
first rest of an answer is a whole pause only on average. Few are all read at one moment of each
pause, many at some, or the last would wait for the others. When the loop is late it is busy: then
all answers are read less often, or the delay would grow.

The numbers aim at showing 95 % of the words of up to 50 answers within 60 ms, of 100 within 100 ms
and of 200 within 200 ms. `bench stream` measures it, and the processor time beside a plain relay
that sends each word by itself.
"""

from __future__ import annotations

import asyncio
import time

#: Seconds between two reads of an answer while there are few, additional seconds for each answer
#: beyond those, and the longest pause of a busy loop.
_SECONDS, _MORE, _BUSY = 0.055, 0.0009, 0.5
_FEW = 50
#: So many answers make one more moment of each pause; the most moments.
TOGETHER, MOMENTS = 25, 5
#: The pause is at least this multiple of the loop's delay.
_TIMES = 2


class Pace:
    """The pace of a process; `begin` and `end` are called for each answer that is shown."""

    def __init__(self) -> None:
        self._live = 0
        self._late = 0.0
        self.seconds = _SECONDS

    def begin(self) -> None:
        self._live += 1
        self._set_seconds()

    def end(self) -> None:
        self._live -= 1
        self._set_seconds()

    def _set_seconds(self) -> None:
        usual = _SECONDS + _MORE * max(0, self._live - _FEW)
        self.seconds = min(_BUSY, max(usual, self._late * _TIMES))

    @property
    def is_slow(self) -> bool:
        return self.seconds == _BUSY

    async def rest(self, since: float) -> None:
        """Wait for the moment nearest to the end of the pause that begins at `since`, a time of
        `monotonic`.
        """
        now = time.monotonic()
        apart = self.seconds / min(MOMENTS, 1 + self._live // TOGETHER)
        due = max(now, round((since + self.seconds) / apart) * apart)
        await asyncio.sleep(due - now)
        self._late = time.monotonic() - due
        self._set_seconds()


pace = Pace()
