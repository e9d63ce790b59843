"""Backpressure: whether the peer of a connection reads what it is sent.

The transport reports when more data waits than its buffer holds, and when the buffer is empty
again. In between a sending application waits, so at most one message beyond the buffer is held. A
peer that reads nothing for a while is disconnected. A slow peer is not: bytes that it has not
acknowledged yet are looked at as well.
"""

from __future__ import annotations

import asyncio
import fcntl
import struct
import termios
from collections.abc import Callable
from typing import Any

#: Seconds between two checks of whether the peer took data.
LOOK_SECONDS = 1.0


class Flow:
    """The producer that a transport pauses and resumes."""

    def __init__(self, transport: Any, patience: float, cut: Callable[[], None]) -> None:
        self.is_blocked = False
        self._transport, self._patience, self._cut = transport, patience, cut
        self._drained: asyncio.Event | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_closing = False

    def pauseProducing(self) -> None:  # noqa: N802 - Twisted's name
        if not self.is_blocked:
            self.is_blocked, self._drained = True, asyncio.Event()
            self._watch()

    def resumeProducing(self) -> None:  # noqa: N802
        self.is_blocked = False
        if self._drained is not None:
            self._drained.set()
            self._drained = None
        if self._timer is not None and not self._is_closing:
            self._timer.cancel()
            self._timer = None

    def stopProducing(self) -> None:  # noqa: N802
        """Release all waiting tasks: the connection is gone."""
        self._is_closing = False
        self.resumeProducing()
        # It refers to the connection, which refers to this.
        self._cut = _do_nothing

    def closing(self) -> None:
        """Watch the remaining data; else a peer could keep a closing connection open for ever."""
        self._is_closing = True
        self._watch()

    async def drained(self) -> None:
        """Wait until the peer has taken everything, or the connection is gone."""
        while self._drained is not None:
            await self._drained.wait()

    def _watch(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._least, self._since = self._waiting(), loop.time()
            self._timer = loop.call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._transport.disconnected:
            return
        loop = asyncio.get_running_loop()
        waiting = self._waiting()
        if waiting < self._least:
            self._least, self._since = waiting, loop.time()
        elif loop.time() - self._since >= self._patience:
            self._cut()
            return
        self._timer = loop.call_later(LOOK_SECONDS, self._look)

    def _waiting(self) -> int:
        """Return the bytes that wait here and in the kernel."""
        transport = self._transport
        held = len(transport.dataBuffer) - transport.offset + transport._tempDataLen
        packed = fcntl.ioctl(transport.fileno(), termios.TIOCOUTQ, bytes(4))
        return int(held + struct.unpack("i", packed)[0])


def _do_nothing() -> None:
    """Cut nothing: the connection is gone."""
