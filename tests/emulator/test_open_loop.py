"""A stream for load tests: each delta contains the time it was written and keeps Markdown valid."""

from __future__ import annotations

import asyncio
import json
import re
from random import Random
from typing import Any

import pytest

from agentweb.emulator.scenes.longform import _marked_up
from agentweb.emulator.streaming.open_loop import by_words, write_open_loop
from agentweb.emulator.streaming.sse_events import SseEvent
from conversations.rendering.markdown import convert_markdown

pytestmark = pytest.mark.asyncio
STAMP = re.compile(r"t[0-9A-Z]{10} ")


async def sent(text: str) -> list[str]:
    """Return the deltas of a text as they are written."""
    bodies: list[bytes] = []

    async def send(message: dict[str, Any]) -> None:
        bodies.append(message.get("body", b""))

    deltas = [{"type": "text_delta", "text": each} for each in by_words(text, Random(1))]
    data = [json.dumps({"delta": each}, separators=(",", ":")) for each in deltas]
    steps = [SseEvent("content_block_delta", f"data: {each}\n\n".encode(), True) for each in data]
    await write_open_loop(steps, send, asyncio.Event(), 1e6, Random(1))
    found = [json.loads(each.removeprefix(b"data: ")) for each in bodies if each]
    return [each["delta"]["text"] for each in found]


async def test_each_delta_has_a_stamp_and_the_text_is_the_same_without() -> None:
    text = _marked_up(600)
    deltas = await sent(text)
    assert [len(STAMP.findall(each)) for each in deltas] == [1] * len(deltas)
    assert STAMP.sub("", "".join(deltas)) == text
    assert len(deltas) == 300


async def test_the_stamps_break_no_block_of_the_markdown() -> None:
    text = _marked_up(600)
    plain, stamped = convert_markdown(text), convert_markdown("".join(await sent(text)))
    for block in ("<pre>", "<table>", "<td", "<li>", "<p>", "<h2>", "<strong>", "<a "):
        assert plain.count(block) == stamped.count(block) > 4
