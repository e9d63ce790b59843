"""The throughput of the emulator next to that of the application, measured in one run.

The emulator runs in a process of its own. First, clients that only read bytes measure what it can
send. Then the application's client (`conversations.claude.client`) and its parser read the same
streams: the minimum that every turn does. A load test against the emulator measures the application
only while the first figure is much larger than the second. Processor time is shown next to wall
time, because it does not depend on the load of the machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from conversations.agent.answer import Answer
from conversations.agent.ports import Head
from conversations.claude.client import Claude, Deadlines

MODEL = "claude-sonnet-5-5"
_ROOT = Path(__file__).resolve().parents[2]
_END = b"event: message_stop"
_TICKS = os.sysconf("SC_CLK_TCK")
#: The faster side reads this many times as much, since the kernel counts time in ticks.
_MORE = 5
_CALM = Deadlines(first_event=60, silence=60, attempt=600)


@dataclass(frozen=True, slots=True)
class Rate:
    """The rate of one side of the comparison."""

    streams: int
    events: int
    seconds: float
    #: Processor time of the measured side only.
    processor_seconds: float

    @property
    def events_per_second(self) -> float:
        return self.events / self.seconds

    @property
    def microseconds_per_event(self) -> float:
        return self.processor_seconds * 1e6 / self.events


@dataclass(frozen=True, slots=True)
class Measured:
    emulator: Rate
    application: Rate

    @property
    def ratio(self) -> float:
        """Return how many such applications the emulator could serve, by wall-clock time."""
        return self.emulator.events_per_second / self.application.events_per_second

    @property
    def processor_ratio(self) -> float:
        return self.application.microseconds_per_event / self.emulator.microseconds_per_event

    def data(self) -> dict[str, Any]:
        rates = {"ratio": self.ratio, "processor_ratio": self.processor_ratio}
        return {"emulator": asdict(self.emulator), "application": asdict(self.application)} | rates


def measure(*, streams: int, at_once: int, words: int = 3_000) -> Measured:
    """Read `streams` streams on each side, `at_once` of them at a time."""
    body = _body(words)
    with _emulator() as (url, process):
        host, _, port = url.removeprefix("http://").partition(":")

        async def read_bytes() -> int:
            return await _read_raw(host, int(port), body)

        async def read_with_client() -> int:
            return await _read_as_application(url, body)

        events = asyncio.run(read_with_client())
        asyncio.run(read_bytes())
        before, began = _processor_seconds(process), time.perf_counter()
        asyncio.run(_many(read_bytes, streams * _MORE, at_once))
        seconds, spent = time.perf_counter() - began, _processor_seconds(process) - before
        emulator_rate = Rate(
            streams * _MORE, streams * _MORE * events, seconds, max(spent, 1 / _TICKS)
        )
        began, own = time.perf_counter(), time.process_time()
        asyncio.run(_many(read_with_client, streams, at_once))
        seconds, own = time.perf_counter() - began, time.process_time() - own
        application_rate = Rate(streams, streams * events, seconds, own)
    return Measured(emulator_rate, application_rate)


async def _many(read: Callable[[], Coroutine[Any, Any, int]], count: int, at_once: int) -> None:
    gate = asyncio.Semaphore(at_once)

    async def one() -> None:
        async with gate:
            await read()

    await asyncio.gather(*(one() for _ in range(count)))


async def _read_raw(host: str, port: int, body: str) -> int:
    """Read a stream to its end without parsing it; return its bytes."""
    data = body.encode()
    head = (
        f"POST /v1/messages HTTP/1.1\r\nhost: {host}\r\nx-api-key: k\r\n"
        f"anthropic-version: 2023-06-01\r\ncontent-length: {len(data)}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection(host, port, limit=1 << 20)
    writer.write(head.encode() + data)
    size, tail = 0, b""
    while _END not in tail:
        chunk = await reader.read(1 << 18)
        if not chunk:
            raise ConnectionError("the emulator's stream ended early")
        size += len(chunk)
        tail = tail[-len(_END) :] + chunk
    writer.close()
    await writer.wait_closed()
    return size


async def _read_as_application(url: str, body: str) -> int:
    """Read a stream as a turn does; return the number of its events."""
    claude, answer, events = Claude(api_key="k", base_url=url, deadlines=_CALM), Answer(), 0
    async with aclosing(claude.stream(body)) as items:
        async for item in items:
            if not isinstance(item, Head):
                for event in item.events:
                    answer.feed(event)
                events += len(item.events)
    await claude.close()
    return events


def _body(words: int) -> str:
    prompt = f"Answer in {words} words"
    messages = [{"role": "user", "content": prompt}]
    sent = {"model": MODEL, "max_tokens": words * 4, "stream": True, "messages": messages}
    return json.dumps(sent)


@contextmanager
def _emulator() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command = [sys.executable, "-m", "agentweb.emulator", "--port", "0", "--pace", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_ROOT)
    try:
        line = process.stdout.readline() if process.stdout else ""
        yield line.split()[-1], process
    finally:
        process.terminate()
        process.wait(10)


def _processor_seconds(process: subprocess.Popen[str]) -> float:
    """Return the processor time of a process, as the kernel reports it."""
    stat = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii")
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
