"""What a stream is made of: frames on the wire, silences, and ends that are not the proper one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentweb.emulator import wire


@dataclass(frozen=True, slots=True)
class Frame:
    """One server-sent event, encoded."""

    name: str
    data: bytes
    #: A delta: the pace of the stream comes before it.
    paced: bool = False


@dataclass(frozen=True, slots=True)
class Silence:
    seconds: float


@dataclass(frozen=True, slots=True)
class End:
    """`clean` ends the HTTP body properly, `cut` in the middle of it, `reset` with a TCP reset."""

    how: Literal["clean", "cut", "reset"]


Step: TypeAlias = Frame | Silence | End
Steps: TypeAlias = Iterator[Step]


def event(name: str, body: wire.Object) -> Frame:
    return Frame(name, b"event: %b\ndata: %b\n\n" % (name.encode(), wire.encode(body)))


PING = event("ping", {"type": "ping"})
STOP = event("message_stop", {"type": "message_stop"})
