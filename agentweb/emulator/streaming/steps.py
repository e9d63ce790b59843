"""The parts of a stream: events, silences and abnormal ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentweb.emulator import json_codec


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One server-sent event, encoded."""

    name: str
    data: bytes
    #: A delta: the pace of the stream applies before it.
    paced: bool = False


@dataclass(frozen=True, slots=True)
class Silence:
    seconds: float


@dataclass(frozen=True, slots=True)
class End:
    """The end of the HTTP body: `clean`, `cut` in the middle of it, or `reset` with a TCP reset."""

    how: Literal["clean", "cut", "reset"]


Step: TypeAlias = SseEvent | Silence | End
Steps: TypeAlias = Iterator[Step]


def event(name: str, body: json_codec.Object) -> SseEvent:
    return SseEvent(name, b"event: %b\ndata: %b\n\n" % (name.encode(), json_codec.encode(body)))


PING = event("ping", {"type": "ping"})
STOP = event("message_stop", {"type": "message_stop"})
