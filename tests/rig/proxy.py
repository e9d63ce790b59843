"""A TCP proxy that fails on demand: between the app and the model, a database, or a browser.

    with Proxy(emulator.port) as wire:
        ... AGENTWEB uses wire.port ...
        wire.cut_after(900)          # of what the far side sends, on each new connection
        wire.freeze()                # open connections go silent; thaw() lets them continue
        wire.kill()                  # every connection is reset now
        wire.cut_when(b"COMMIT")     # cut when the near side sends that; after=True: after it
        wire.behave()                # be a plain proxy again

"Near" is the side that connects (the app), "far" the side that is connected to. The settings apply
to open and new connections, but `refuse` and `blackhole` only to new ones. The proxy runs on its
own thread and event loop, so tests with and without a loop use it alike.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

_CHUNK = 65_536


@dataclass(slots=True)
class Manners:
    """The current behaviour of the proxy."""

    refuses: bool = False
    swallows: bool = False
    is_frozen: bool = False
    #: Seconds before data is passed on, in each direction.
    delay: float = 0.0
    #: Seconds between single bytes from the far side; 0: unchanged chunks.
    dribble: float = 0.0
    #: Bytes from the far side after which a connection ends; -1: none.
    most: int = -1
    resets: bool = False
    #: Bytes of the near side at which a connection is cut, before or after they are passed on.
    word: bytes = b""
    is_after: bool = False
    #: Occurrences of `word` to ignore first, and connections to cut after that.
    skips: int = 0
    times: int = 1


@dataclass(slots=True, eq=False)
class _Link:
    near: asyncio.StreamWriter
    far: asyncio.StreamWriter | None = None
    received: int = 0
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def cut(self, *, resets: bool) -> None:
        for writer in (self.near, self.far):
            if writer is None:
                continue
            if resets:
                _linger_no_more(writer)
                writer.transport.abort()
            else:
                writer.close()


class Proxy:
    """Passes bytes on to a port of this machine; the module docstring lists its settings."""

    def __init__(self, target: int, port: int = 0) -> None:
        self.target = target
        self._socket = socket.create_server(("127.0.0.1", port), backlog=1024)
        self.port: int = self._socket.getsockname()[1]
        self.manners = Manners()
        #: Connections cut at the current word.
        self.cuts = 0
        self._links: set[_Link] = set()
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name=f"proxy-{self.port}", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def connections(self) -> int:
        return len(self._links)

    def behave(self) -> None:
        """Behave as a plain proxy again."""
        self.manners = Manners()

    def refuse(self) -> None:
        """Reset every new connection at once, as on a closed port."""
        self.manners.refuses = True

    def blackhole(self) -> None:
        """Accept new connections and their data, and never answer."""
        self.manners.swallows = True

    def freeze(self) -> None:
        """Pass nothing on until `thaw`; the connections stay open."""
        self.manners.is_frozen = True

    def thaw(self) -> None:
        self.manners.is_frozen = False

    def delay(self, seconds: float) -> None:
        """Delay all data by `seconds`."""
        self.manners.delay = seconds

    def dribble(self, seconds: float) -> None:
        """Pass on data of the far side byte by byte, one every `seconds`."""
        self.manners.dribble = seconds

    def cut_after(self, size: int) -> None:
        """Close each connection after `size` bytes from the far side."""
        self.manners.most, self.manners.resets = size, False

    def rst_after(self, size: int) -> None:
        """Reset each connection after `size` bytes from the far side."""
        self.manners.most, self.manners.resets = size, True

    def cut_when(self, word: bytes, *, after: bool = False, times: int = 1, skips: int = 0) -> None:
        """Reset a connection when the near side sends a word, before or after passing it on."""
        self.cuts = 0
        self.manners = replace(self.manners, word=word, is_after=after, times=times, skips=skips)

    def kill(self) -> None:
        """Reset every open connection now."""
        self._loop.call_soon_threadsafe(self._kill)

    def _kill(self) -> None:
        for link in list(self._links):
            link.cut(resets=True)

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join(timeout=10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._take, sock=self._socket)
        await self._stopping.wait()
        server.close()
        self._kill()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = _Link(writer)
        if self.manners.refuses:
            link.cut(resets=True)
            return
        self._links.add(link)
        try:
            if self.manners.swallows:
                while await reader.read(_CHUNK):
                    pass
                return
            far_reader, link.far = await asyncio.open_connection("127.0.0.1", self.target)
            up = self._pass(link, reader, link.far, self._up)
            down = self._pass(link, far_reader, writer, self._down)
            await asyncio.gather(up, down)
        except OSError:
            link.cut(resets=True)
        finally:
            link.cut(resets=False)
            self._links.discard(link)

    async def _pass(
        self,
        link: _Link,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        send: Callable[..., object],
    ) -> None:
        try:
            while data := await reader.read(_CHUNK):
                if self.manners.delay:
                    await asyncio.sleep(self.manners.delay)
                while self.manners.is_frozen:
                    await asyncio.sleep(0.01)
                if not await send(link, writer, data):  # type: ignore[misc]
                    return
            if writer.can_write_eof():
                writer.write_eof()
        except (OSError, RuntimeError):
            link.cut(resets=True)

    async def _up(self, link: _Link, writer: asyncio.StreamWriter, data: bytes) -> bool:
        manners = self.manners
        is_said = bool(manners.word) and manners.times > 0 and manners.word in data
        if is_said and manners.skips:
            manners.skips -= 1
            is_said = False
        if is_said:
            manners.times -= 1
            self.cuts += 1
        if not is_said or manners.is_after:
            writer.write(data)
            await writer.drain()
        if is_said:
            if manners.is_after:
                # Time to arrive: the far side has done it, but the near side gets no answer.
                await asyncio.sleep(0.05)
            link.cut(resets=True)
        return not is_said

    async def _down(self, link: _Link, writer: asyncio.StreamWriter, data: bytes) -> bool:
        most = self.manners.most
        if 0 <= most <= link.received + len(data):
            writer.write(data[: max(0, most - link.received)])
            await writer.drain()
            link.cut(resets=self.manners.resets)
            return False
        link.received += len(data)
        if self.manners.dribble:
            for byte in data:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(self.manners.dribble)
        else:
            writer.write(data)
            await writer.drain()
        return True


def _linger_no_more(writer: asyncio.StreamWriter) -> None:
    """Have the kernel reset the connection when it is closed."""
    raw = writer.transport.get_extra_info("socket")
    if raw is not None:
        try:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            return
