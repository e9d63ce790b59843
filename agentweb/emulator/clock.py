"""Clocks: cache lifetimes, rate windows and headers read one that a test can advance."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Return seconds since the epoch."""


class SystemClock:
    def now(self) -> float:
        return time.time()


class VirtualClock:
    """A clock that only moves when it is advanced."""

    def __init__(self, start: float = 1_795_219_200.0) -> None:
        self._now = start

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += seconds


def rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
