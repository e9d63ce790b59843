"""Server-sent events from bytes, as they come: any chunking gives the same events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conversations.context import wire
from conversations.context.errors import WireError

#: An event longer than this is none of the API's.
MOST_BYTES = 32_000_000


class EventReader:
    """Feed it bytes; it gives the data of each complete event, decoded, in order.

    What comes before something that is no event is given before the error is raised.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            self._rest += line
            whole = bytes(self._rest.removesuffix(b"\r"))
            self._rest.clear()
            yield from self._line(whole)
        self._rest += rest
        self._bound(len(self._rest))

    def _line(self, line: bytes) -> Iterator[dict[str, Any]]:
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
            self._size += len(line)
            self._bound(0)
        elif not line and self._data:
            data = b"\n".join(self._data)
            self._data, self._size = [], 0
            yield _decode(data)

    def _bound(self, unfinished: int) -> None:
        if self._size + unfinished > MOST_BYTES:
            raise WireError("an event of the stream is too long")


def _decode(data: bytes) -> dict[str, Any]:
    try:
        value = wire.decode(data.decode())
    except UnicodeDecodeError as error:
        raise WireError(f"not UTF-8: {error.reason} at {error.start}") from error
    if not isinstance(value, dict):
        raise WireError("an event's data is an object")
    return value
