"""Server-sent events from bytes, as they come: any chunking gives the same events."""

from __future__ import annotations

from conversations.context import wire
from conversations.context.errors import WireError

#: A line longer than this is no event of the API.
MAX_LINE = 32_000_000


class EventReader:
    """Feed it bytes; it gives the data of each complete event, decoded, in order."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[dict[str, object]]:
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > MAX_LINE:
            raise WireError("a line of the stream is too long")
        events: list[dict[str, object]] = []
        for raw in lines:
            line = raw.removesuffix(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                events.append(_decode(b"\n".join(self._data)))
                self._data = []
        return events


def _decode(data: bytes) -> dict[str, object]:
    try:
        value = wire.decode(data.decode())
    except UnicodeDecodeError as error:
        raise WireError(f"not UTF-8: {error}") from error
    if not isinstance(value, dict):
        raise WireError("an event's data is an object")
    return value
