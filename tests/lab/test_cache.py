"""The cache simulator: its own laws, and agreement with the emulator's on the same requests."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest

from agentweb.emulator import canonical_blocks, prompt_units, tokens
from agentweb.emulator.app import create_app
from agentweb.emulator.clock import VirtualClock
from conversations.context.view import envelope as envelopes
from conversations.context.view.cache_breakpoints import SECONDS
from conversations.context.view.view import View
from conversations.lab.cache import PromptCache, find_minimum
from conversations.lab.cache_blocks import BlockReader
from conversations.lab.call_times import LONG, PAUSES, ROUND_SECONDS, schedule_calls
from conversations.lab.records import Record
from conversations.lab.replayer import Replayer, Step
from conversations.lab.simulated_tokenizer import Tokenizer, build_tokenizer
from tests.lab.samples import PAGE, answer, call, reading, record, result, text, user, world

HEADERS = ((b"x-api-key", b"sk-test"), (b"anthropic-version", b"2023-06-01"))
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJg"
    "gg=="
)
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
EMULATED = Tokenizer(
    block=lambda value: tokens.BLOCK_TOKENS + prompt_units.count_block(value, "newer"),
    tool=lambda tool: (
        tokens.BLOCK_TOKENS
        + tokens.count_text(canonical_blocks.tool_essence(tool).decode(), "newer")
    ),
    message=0,
    request=tokens.REQUEST_TOKENS,
    tools=tokens.TOOLS_TOKENS,
)
Split = tuple[int, int, int]


class ReferenceCache:
    """The emulator, asked with the replay's own bodies at the replay's own times."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.app = create_app(clock=self.clock)
        self.now = 0.0

    def split(self, body: bytes, at: float) -> Split:
        """Give fresh, read and written tokens as the emulator bills them."""
        self.clock.advance(at - self.now)
        self.now = at
        answered = asyncio.run(_post(self.app, body))
        assert answered[0] == 200, answered[1]
        usage = next(
            json.loads(line[6:])["message"]["usage"]
            for line in answered[1].decode().splitlines()
            if line.startswith('data: {"type":"message_start"')
        )
        return (
            usage["input_tokens"],
            usage["cache_read_input_tokens"],
            usage["cache_creation_input_tokens"],
        )


async def _post(app: Any, body: bytes) -> tuple[int, bytes]:
    sent: list[dict[str, Any]] = []
    asked = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if asked:
            return asked.pop()
        await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/messages", "headers": HEADERS}
    await app(scope | {"query_string": b""}, receive, send)
    bodies = [m["body"] for m in sent if m["type"] == "http.response.body"]
    return sent[0]["status"], b"".join(bodies)


def images() -> list[dict[str, Any]]:
    """A conversation in which an image comes late, and again in a result."""
    return [
        user("Look at these.", PAGE),
        answer("I look.", call("toolu_1", "a.txt")),
        user(result("toolu_1", PAGE)),
        answer("Now?"),
        user("And this one.", IMAGE),
        answer("A dot.", call("toolu_2", "b.png")),
        user(result("toolu_2", [text("it says"), IMAGE])),
        answer("Two dots."),
    ]


def wide() -> list[dict[str, Any]]:
    """Answers with more calls than a look back reaches."""
    asked = [call(f"toolu_{n}", f"{n}.txt") for n in range(24)]
    given = [result(f"toolu_{n}", f"{n}: {PAGE[:200]}") for n in range(24)]
    return [
        user("Read all of it.", PAGE),
        answer("At once.", *asked),
        user(*given),
        answer("Done."),
        user("Again, please."),
        answer("No."),
    ]


#: Messages, policy, and what the session is there to show.
SESSIONS = {
    "short": ([user("Hello"), answer("Hi"), user("Bye"), answer("Bye")], "off", "uncached"),
    "one turn": (reading(6), "off", "read"),
    "turns with pauses": (reading(2, prompts=7), "off", "cold"),
    "compacted": (reading(14, prompts=2), "tool-budget", "compaction"),
    "summarised": (reading(30, prompts=3), "rebuild", "summary"),
    "images": (images(), "off", "read"),
    "wide": (wide(), "off", "cold"),
}


@pytest.mark.parametrize("name", SESSIONS)
def test_the_simulator_bills_what_the_emulator_bills(name: str) -> None:
    messages, policy, shows = SESSIONS[name]
    one, reference = record(messages), ReferenceCache()
    times = schedule_calls(one)
    seen = set()
    for step in Replayer(one, world(policy, tokenizer=EMULATED)).steps():
        usage = step.usage
        assert usage is not None
        body = envelopes.join_body(step.envelope.text, step.messages).encode()
        billed = (usage.input, usage.cache_read, usage.cache_write)
        assert billed == reference.split(body, times.pop(step.at))
        seen |= {change.kind for change in step.changes}
        seen.add("read" if usage.cache_read else "cold" if usage.cache_write else "uncached")
    assert not times
    assert shows in seen


def _steps(one: Record, **fields: Any) -> list[Step]:
    return list(Replayer(one, world("off", **fields)).steps())


def test_a_growing_conversation_reads_all_that_it_wrote() -> None:
    written = 0
    for step in _steps(record(reading(8)), minimum=0):
        assert step.usage is not None
        assert (step.usage.input, step.usage.cache_read) == (0, written)
        written = step.usage.context


def test_what_a_call_costs_is_fresh_read_and_written_once_each() -> None:
    for step in _steps(record(reading(5, prompts=3))):
        assert step.usage is not None
        assert step.prepared is not None
        view, envelope = step.prepared.view, step.envelope
        line = BlockReader(build_tokenizer()).line(envelope, view)
        assert step.usage.context == line.tokens


def test_after_a_long_pause_all_is_written_again() -> None:
    long = [at + 1 for at, pause in enumerate(PAUSES[:25]) if pause > SECONDS["5m"]]
    reads = [step.usage.cache_read for step in _steps(record(reading(1, prompts=26))) if step.usage]
    turns = reads[::2]
    assert len(long) == 4
    assert sum(pause > SECONDS["5m"] for pause in PAUSES) == 20
    assert sum(pause > SECONDS["1h"] for pause in PAUSES) == 1
    assert [at for at in range(1, len(turns)) if not turns[at]] == long


def test_pauses_are_those_that_the_recorded_counters_show() -> None:
    used = [
        {"message": 1, "input": 3, "cache_read": 30_000},
        {"message": 3, "input": 2_000, "cache_read": 30_000},
        {"message": 5, "cache_read": 9_000, "cache_write": 26_000},
        {"message": 7, "cache_read": 35_000, "cache_write": 1_000},
    ]
    times = schedule_calls(record(reading(1, prompts=3), recorded_usage=used))
    assert list(times) == [1, 3, 5, 7, 9, 11]
    gaps = [later - earlier for earlier, later in pairwise(times.values())]
    # The third call met a cold cache; the last prompt has no counters, so its pause is drawn.
    assert gaps == [ROUND_SECONDS, LONG, ROUND_SECONDS, PAUSES[0], ROUND_SECONDS]


def test_recorded_times_are_the_clock() -> None:
    messages = reading(1, prompts=2)
    stamps = [f"2026-11-21T10:{minute:02}:00+00:00" for minute in range(len(messages))]
    stamped = [m | {"timestamp": s} for m, s in zip(messages, stamps, strict=True)]
    times = schedule_calls(record(stamped))
    assert [round(at - times[1]) for at in times.values()] == [0, 120, 240, 360]


def test_a_wide_round_reads_all_that_was_written_before_it() -> None:
    usages = [step.usage for step in _steps(record(wide()))]
    assert usages[0] is not None
    assert usages[1] is not None
    assert usages[0].cache_write == usages[1].cache_read > 1_024


def test_moving_marks_keep_the_prefix_and_summary_calls_ask_for_no_cache() -> None:
    assert all(step.keeps_prefix for step in _steps(record(wide())))
    steps = Replayer(record(reading(30, prompts=3)), world("rebuild")).steps()
    summaries = [usage for step in steps for usage in step.summaries]
    assert summaries
    assert not any(usage.cache_read or usage.cache_write for usage in summaries)


def test_below_the_minimum_nothing_is_cached() -> None:
    for step in _steps(record([user("Hello"), answer("Hi"), user("Bye"), answer("Bye")])):
        assert step.usage is not None
        assert (step.usage.cache_read, step.usage.cache_write) == (0, 0)


def test_a_mark_on_the_system_prompt_outlives_changed_messages() -> None:
    marked = text(PAGE) | {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    envelope = envelopes.build_envelope(model="m", max_tokens=9, system="x")
    parameters = tuple(
        (name, [marked] if name == "system" else value) for name, value in envelope.parameters
    )
    head = envelopes.Envelope(parameters, "", 0)
    liner, cache = BlockReader(build_tokenizer()), PromptCache(find_minimum("claude-sonnet-5-5"))
    bills = []
    for words in (f"one {PAGE}", f"two {PAGE}"):
        view = View().append(record([user(words), answer("Hi")]).messages[0])
        bills.append(cache.bill(liner.line(head, view), 5, 0.0))
    assert bills[0].cache_write_1h == bills[1].cache_read > 1_024
    assert bills[0].cache_write_5m == bills[1].cache_write_5m > 1_024
