"""Open-loop load: deltas at a fixed rate, whether or not they are read, each with a time stamp.

A source that waits for its reader hides the reader's cost. This one writes on time, into an
unbounded buffer, and adds to each delta a word of ten digits to the base 36, `tHE7S0K2QX1`:
microseconds of the machine's clock. The word stands between two words of a line, where it changes
no Markdown: at the beginning of a line it could keep a code block from being closed.
"""

from __future__ import annotations

import asyncio
import re
import time
from random import Random

from agentweb.emulator.asgi import Send
from agentweb.emulator.streaming.steps import SseEvent, Steps

_WORDS = re.compile(r"(?:\S+\s*){1,2}")
_DIGITS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#: How a text delta begins and ends on the wire; in between, a space separates words of a line.
_TEXT, _END = b'"text_delta","text":"', b'"}}\n\n'
_GAP = re.compile(rb'(?<!\\n)(?<![ "]) (?![ \\"])')


def by_words(text: str, dice: Random) -> list[str]:
    """Cut a text into deltas of a few words."""
    return _WORDS.findall(text)


async def write_open_loop(
    steps: Steps, send: Send, disconnected: asyncio.Event, rate: float, dice: Random
) -> None:
    """Write `rate` deltas a second with gaps that vary by half; a late delta is not skipped."""
    await send({"type": "emulator.unbounded", "more_body": True})
    clock = asyncio.get_running_loop().time
    due = clock()
    for step in steps:
        if disconnected.is_set():
            return
        if not isinstance(step, SseEvent):
            continue
        data = step.data
        if step.paced:
            due += dice.uniform(0.5, 1.5) / rate
            if (wait := due - clock()) > 0:
                await asyncio.sleep(wait)
            data = _stamped(data)
        await send({"type": "http.response.body", "body": data, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _stamped(data: bytes) -> bytes:
    if _TEXT not in data:
        return data
    gap = _GAP.search(data, data.index(_TEXT))
    at = gap.end() if gap else len(data) - len(_END)
    return b"%bt%b %b" % (data[:at], _stamp(time.time_ns() // 1_000), data[at:])


def _stamp(left: int) -> bytes:
    digits = bytearray()
    while left:
        left, digit = divmod(left, 36)
        digits.append(_DIGITS[digit])
    return bytes(reversed(digits))
