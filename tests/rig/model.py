"""The emulator with barriers: a held answer continues only when it is released.

    model = start(script=SCRIPT)                      # on a thread of the test's own process
    held = model.hold(saying("please"), after=3)      # after three deltas of that answer
    ... send a message ...
    await held.came()                                 # the model halts there now
    ... kill somebody ...
    held.release()

`after` counts deltas that were sent: 0 for the moment before the first one, None for before the
answer begins at all, LAST for all of the answer but its last event. A request whose client
disconnected leaves its barrier. Every request is in `model.emulator.log`.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agentweb.emulator import json_codec
from agentweb.emulator.app import EmulatorApp, create_app
from agentweb.emulator.asgi import Message, Receive, Scope, Send, read_body
from agentweb.emulator.script import Script
from agentweb.emulator.server import EmulatorServer
from agentweb.emulator.state import Emulator

#: The whole answer except `message_stop`.
LAST = -1
Fits = Callable[[dict[str, Any]], bool]
_DELTA, _STOP = b"event: content_block_delta", b"event: message_stop"


@dataclass(slots=True, eq=False)
class Barrier:
    """At most `times` matching requests halt here until `release`."""

    fits: Fits
    after: int | None
    times: int
    #: Number of requests that reached the barrier, and of those halted now.
    count: int = 0
    standing: int = 0
    _open: threading.Event = field(default_factory=threading.Event)

    async def came(self, times: int = 1, seconds: float = 120) -> None:
        """Wait until `times` requests have halted here."""
        async with asyncio.timeout(seconds):
            while self.count < times:
                await asyncio.sleep(0.005)

    def wait(self, times: int = 1, seconds: float = 120) -> None:
        """Wait like `came`, in a test without an event loop."""
        deadline = time.monotonic() + seconds
        while self.count < times:
            assert time.monotonic() < deadline, "nobody came to the barrier"
            time.sleep(0.005)

    def release(self) -> None:
        self._open.set()

    async def pause(self, gone: asyncio.Event) -> None:
        self.count += 1
        self.standing += 1
        while not self._open.is_set() and not gone.is_set():
            await asyncio.sleep(0.005)
        self.standing -= 1


class HoldingApp(EmulatorApp):
    """The emulator with barriers."""

    def __init__(self, emulator: Emulator) -> None:
        super().__init__(emulator)
        self.barriers: list[Barrier] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self.barriers or scope.get("path") != "/v1/messages":
            await super().__call__(scope, receive, send)
            return
        whole = await read_body(receive, 1 << 30) or b""
        barrier = self._fitting(whole)
        gone, bodies = asyncio.Event(), [whole]

        async def again() -> Message:
            if bodies:
                return {"type": "http.request", "body": bodies.pop(), "more_body": False}
            message = await receive()
            if message["type"] == "http.disconnect":
                gone.set()
            return message

        if barrier is None:
            await super().__call__(scope, again, send)
        elif barrier.after is None:
            await _watching(receive, gone, barrier)
            if not gone.is_set():
                await super().__call__(scope, again, send)
        else:
            await super().__call__(scope, again, _Held(barrier, barrier.after, gone, send).send)

    def _fitting(self, whole: bytes) -> Barrier | None:
        body = json_codec.decode(whole)
        for barrier in self.barriers:
            if barrier.times > 0 and isinstance(body, dict) and barrier.fits(body):
                barrier.times -= 1
                return barrier
        return None


async def _watching(receive: Receive, gone: asyncio.Event, barrier: Barrier) -> None:
    """Halt at a barrier before the request is read; leave when the client disconnects."""

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        gone.set()

    task = asyncio.create_task(watch())
    try:
        await barrier.pause(gone)
    finally:
        task.cancel()


@dataclass(slots=True)
class _Held:
    """Sends an answer up to the barrier, and the rest after it."""

    barrier: Barrier
    after: int
    gone: asyncio.Event
    send_on: Send
    seen: int = 0
    is_past: bool = False

    async def send(self, message: Message) -> None:
        if self.is_past or message["type"] != "http.response.body":
            await self.send_on(message)
            return
        passed = bytearray()
        for event in _events(message.get("body", b"")):
            if self._is_due(event) and not self.is_past:
                self.is_past = True
                if passed:
                    await self.send_on({**message, "body": bytes(passed), "more_body": True})
                    passed.clear()
                await self.barrier.pause(self.gone)
            self.seen += event.startswith(_DELTA)
            passed += event
        await self.send_on({**message, "body": bytes(passed)})

    def _is_due(self, event: bytes) -> bool:
        if self.after == LAST:
            return event.startswith(_STOP)
        if self.seen == self.after:
            return event.startswith((_DELTA, b"event: content_block_stop"))
        return self.seen > self.after


def _events(data: bytes) -> list[bytes]:
    parts = data.split(b"\n\n")
    return [part + b"\n\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


class Model(EmulatorServer):
    """A running emulator with barriers."""

    app: HoldingApp

    def hold(self, fits: Fits, after: int | None = None, times: int = 1) -> Barrier:
        """Halt the next matching requests after `after` deltas."""
        barrier = Barrier(fits, after, times)
        self.app.barriers.append(barrier)
        return barrier

    def bodies(self) -> list[bytes]:
        """Return the bodies of all requests for messages."""
        return [row.body for row in self.emulator.log if row.path == "/v1/messages"]

    def let_go(self) -> None:
        """Remove the barriers, and release all halted requests."""
        for barrier in self.app.barriers:
            barrier.release()
        self.app.barriers.clear()


def start(script: Script | None = None, *, pace: float = 0.0, port: int = 0) -> Model:
    """Serve on a thread of this process."""
    app = HoldingApp(create_app(script=script, pace=pace, record=True).emulator)
    model = Model(app, port=port)
    model.start()
    return model


def saying(words: str) -> Fits:
    """Match requests with these words (a pattern) in the last message, before any tool results."""
    pattern = re.compile(words)

    def fits(body: dict[str, Any]) -> bool:
        last = _blocks(body["messages"][-1])
        texts = [block["text"] for block in last if block["type"] == "text"]
        is_plain = all(block["type"] != "tool_result" for block in last)
        return is_plain and any(pattern.search(text) for text in texts)

    return fits


def with_results(body: dict[str, Any]) -> bool:
    """Match a request with tool results."""
    return any(block["type"] == "tool_result" for block in _blocks(body["messages"][-1]))


def summarising(body: dict[str, Any]) -> bool:
    """Match a request for a summary."""
    return not body.get("tools") and "ummar" in str(body.get("system", ""))


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
