"""How often answers on their way are read and shown: less often each, the more of them there are.

Waking up, rendering and sending cost about the same for one word as for many, and nobody reads so
fast. What is read at this pace is shown as soon as it is read, so that words wait once.
"""

from __future__ import annotations

#: Seconds between two looks at a single answer, and more for each other one.
_SECONDS, _MORE = 0.08, 0.0024


class Pace:
    """The pace of a process; `begin` and `end` are called for each answer that is shown."""

    def __init__(self) -> None:
        self._live = 0

    def begin(self) -> None:
        self._live += 1

    def end(self) -> None:
        self._live -= 1

    @property
    def seconds(self) -> float:
        return _SECONDS + _MORE * max(0, self._live - 1)


pace = Pace()
