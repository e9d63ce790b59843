"""Write a stream at a pace, and stop at once when the client disconnects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import assert_never

from agentweb.emulator.asgi import Receive, Send
from agentweb.emulator.streaming.steps import End, Silence, SseEvent, Steps

#: Without a pace, frames are sent together up to this many bytes.
_BATCH = 8_192


@asynccontextmanager
async def watched(receive: Receive) -> AsyncIterator[asyncio.Event]:
    """Yield an event that is set when the client disconnects."""
    disconnected = asyncio.Event()

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        disconnected.set()

    task = asyncio.create_task(watch())
    try:
        yield disconnected
    finally:
        task.cancel()


async def pause(disconnected: asyncio.Event, seconds: float) -> None:
    """Wait, but not longer than the client is connected."""
    try:
        async with asyncio.timeout(None if seconds == float("inf") else seconds):
            await disconnected.wait()
    except TimeoutError:
        return


async def write_steps(steps: Steps, send: Send, disconnected: asyncio.Event, pace: float) -> None:
    batch = bytearray()

    async def flush() -> None:
        if batch:
            await send({"type": "http.response.body", "body": bytes(batch), "more_body": True})
            batch.clear()
            await asyncio.sleep(0)

    for step in steps:
        if disconnected.is_set():
            return
        match step:
            case SseEvent(_, data, paced):
                if paced and pace:
                    await flush()
                    await asyncio.sleep(pace)
                batch += data
                if pace or len(batch) >= _BATCH:
                    await flush()
            case Silence(seconds):
                await flush()
                await pause(disconnected, seconds)
            case End(how):
                await flush()
                await _end(how, send)
                return
            case _:
                assert_never(step)
    await flush()
    await send({"type": "http.response.body", "body": b""})


async def _end(how: str, send: Send) -> None:
    if how == "clean":
        await send({"type": "http.response.body", "body": b""})
    elif how == "reset":
        await send({"type": "emulator.reset"})
