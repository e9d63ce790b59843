"""What the readers of a load test see: each delta once, and its latency.

The unfinished end of an answer is sent again with every frame; a delta counts only the first time.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from aiohttp import ClientSession

from agentweb.bench.http_client import open_stream
from agentweb.bench.shown_page import STAMP

_STAMP_BYTES = re.compile(rb"t([0-9A-Z]{10})")
#: Characters of a stamp; a shorter rest may be the beginning of one.
_LENGTH = 11


@dataclass(slots=True)
class Reader:
    """What one reader has received; done after `wanted` deltas."""

    wanted: int
    asked_at: float = 0.0
    first: float = 0.0
    last: int = 0
    seen: int = 0
    latencies: list[float] = field(default_factory=list)
    is_done: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, text: str) -> None:
        self.count(STAMP.findall(text))

    def count(self, stamps: Sequence[str | bytes]) -> None:
        """Count the new stamps; they are in ascending order."""
        now, fresh, last, earliest = time.time(), 0, self.last, 1 << 62
        for found in reversed(stamps):
            stamp = int(found, 36)
            if stamp <= last:
                break
            # Two frames in one message repeat the same tail.
            if stamp < earliest:
                earliest, fresh = stamp, fresh + 1
                self.latencies.append(now * 1e3 - stamp / 1e3)
                self.last = max(self.last, stamp)
        if fresh:
            self.first = self.first or now
            self.seen += fresh
            if self.seen >= self.wanted:
                self.is_done.set()


async def read_response(
    client: ClientSession, url: str, body: bytes, headers: Mapping[str, str], reader: Reader
) -> None:
    """Post a request and read its streamed answer to the end; reads may split a stamp."""
    rest = b""
    async with open_stream(client, url, body, headers) as pieces:
        async for piece in pieces:
            data = rest + piece
            found = list(_STAMP_BYTES.finditer(data))
            reader.count([each[1] for each in found])
            rest = data[max(found[-1].end() if found else 0, len(data) - _LENGTH + 1) :]


def compute_quantiles(values: Iterable[float]) -> dict[str, float]:
    """Return p50, p95, p99 and the maximum; an empty dict without values."""
    found = sorted(values)
    if not found:
        return {}
    points = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {name: round(found[round(at * (len(found) - 1))], 2) for name, at in points.items()}
