"""What a server may send: counted before it is read, because reading it holds the interpreter lock.

The same for both transports. A server that sends more is disconnected with the reason.
"""

from __future__ import annotations

import asyncio
from collections import deque

from pydantic import BaseModel, ValidationError

from tools.mcp.errors import ServerError

#: Most messages in `SPAN` seconds, and most of them that ask for an answer.
MOST_MESSAGES, MOST_REQUESTS, SPAN = 2_000, 100, 10.0
#: Most bytes in `SPAN` seconds, and most brackets, braces and commas of one message,
#: those within its texts aside.
MOST_BYTES, MOST_PARTS = 60_000_000, 400_000


class _Kind(BaseModel):
    """What tells a request from other messages; all else of it is passed over."""

    id: object = None
    method: object = None


class Traffic:
    """What one server has sent of late; a check raises ServerError above a limit."""

    def __init__(self) -> None:
        self._messages: deque[float] = deque(maxlen=MOST_MESSAGES)
        self._requests: deque[float] = deque(maxlen=MOST_REQUESTS)
        self._span_start, self._span_bytes = 0.0, 0

    def check_message(self, message: bytes) -> None:
        """Count a message that has not been read."""
        if count_parts(message) > MOST_PARTS:
            raise ServerError(f"It wrote a message of more than {MOST_PARTS:,} parts.")
        now = asyncio.get_running_loop().time()
        if now - self._span_start > SPAN:
            self._span_start, self._span_bytes = now, 0
        self._span_bytes += len(message)
        if self._span_bytes > MOST_BYTES:
            raise ServerError(f"It sent more than {MOST_BYTES:,} bytes in {SPAN:g} seconds.")
        _count(self._messages, "messages")
        if _asks(message):
            # Each is kept until its refusal is written.
            _count(self._requests, "requests")


def _asks(message: bytes) -> bool:
    try:
        kind = _Kind.model_validate_json(message)
    except ValidationError:
        return False
    return kind.id is not None and kind.method is not None


def _count(times: deque[float], named: str) -> None:
    now = asyncio.get_running_loop().time()
    if len(times) == times.maxlen and now - times[0] < SPAN:
        raise ServerError(f"It sent more than {times.maxlen:,} {named} in {SPAN:g} seconds.")
    times.append(now)


def count_parts(message: bytes) -> int:
    """Count the brackets, braces and commas of JSON; those within texts only where it is needed."""
    count = sum(map(message.count, (b"[", b"{", b",")))
    if count <= MOST_PARTS:
        return count
    message = message.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Each part has a name and a value, which are texts of two quotes each at most.
    if message.count(b'"') > 4 * (MOST_PARTS + 1):
        return count
    outside = b"".join(message.split(b'"')[::2])
    return sum(map(outside.count, (b"[", b"{", b",")))
