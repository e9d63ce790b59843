"""Parse server-sent events incrementally: any chunking gives the same events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conversations.context.errors import WireError
from conversations.context.view import wire

#: Longest event accepted; the API's are shorter.
MOST_BYTES = 32_000_000


class EventReader:
    """Receives bytes and yields the decoded data of each complete event, in order.

    Events before malformed data are yielded before the error is raised.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        *lines, rest = chunk.split(b"\n")
        if lines and self._rest:
            lines[0] = bytes(self._rest + lines[0])
            self._rest.clear()
        for line in lines:
            complete = line.removesuffix(b"\r")
            if complete.startswith(b"data:"):
                self._data.append(complete[5:].removeprefix(b" "))
                self._size += len(complete)
                self._bound(0)
            elif not complete and self._data:
                data = b"\n".join(self._data)
                self._data, self._size = [], 0
                yield _decode(data)
        self._rest += rest
        self._bound(len(self._rest))

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
