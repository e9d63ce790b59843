"""How often a stream is read: what arrives while it rests is passed on together."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from conversations.agent.ports import ModelFailed, Piece
from conversations.claude import client as module
from conversations.claude.client import Claude
from conversations.claude.pace import MOMENTS, TOGETHER, Pace
from tests.agent.streams import says
from tests.claude.test_streams import HEAD
from tests.claude.wire_server import SSE, client, event, http, raw

pytestmark = pytest.mark.asyncio
#: Of an answer of one block: its start, a delta, its end.
START, DELTA, END = says("word ")[:2], says("word ")[2], says("word ")[3:]


class _Resting(Pace):
    """A pace that rests until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.rests = 0
        self.begun, self.over = asyncio.Event(), asyncio.Event()

    async def rest(self, since: float) -> None:
        self.rests += 1
        self.begun.set()
        await self.over.wait()


@pytest.fixture
def resting(monkeypatch: pytest.MonkeyPatch) -> _Resting:
    found = _Resting()
    monkeypatch.setattr("conversations.claude.client.pace", found)
    return found


@pytest.fixture
def transports(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the transports of the responses that were read."""
    found: list[Any] = []
    find = module._find_transport

    def keep(response: Any) -> Any:
        found.append(find(response))
        return found[-1]

    monkeypatch.setattr(module, "_find_transport", keep)
    return found


async def test_what_comes_while_it_rests_waits_in_the_kernel_and_is_given_together(
    resting: _Resting, transports: list[Any]
) -> None:
    parts: asyncio.Queue[bytes] = asyncio.Queue()
    given: list[str] = []
    has_words = asyncio.Event()

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        while part := await parts.get():
            writer.write(part)
            await writer.drain()
            parts.task_done()

    async def listen(claude: Claude) -> None:
        async with aclosing(claude.stream("{}")) as stream:
            async for item in stream:
                if isinstance(item, Piece):
                    given.extend(str(each["type"]) for each in item.events)
                    has_words.set()

    async with raw(answer) as server, client(server.url) as claude:
        task = asyncio.create_task(listen(claude))
        for each in START:
            parts.put_nowait(event(each))
        parts.put_nowait(event(DELTA))
        await asyncio.wait_for(has_words.wait(), 30)
        while given.count("content_block_delta") < 1:
            await asyncio.sleep(0.01)
        # The first words were given at once; what follows them waits for more.
        await asyncio.wait_for(resting.begun.wait(), 30)
        transport = transports[-1]
        assert not transport.is_reading()
        for _ in range(3):
            parts.put_nowait(event(DELTA))
        await parts.join()
        # Long enough for the client's machine to have it, were it looking.
        await asyncio.sleep(0.05)
        assert given.count("content_block_delta") == 1
        resting.over.set()
        while given.count("content_block_delta") < 4:
            await asyncio.sleep(0.01)
        assert transport.is_reading()
        parts.put_nowait(b"".join(event(each) for each in END))
        parts.put_nowait(b"")
        await asyncio.wait_for(task, 30)
    assert given[-1] == "message_stop"
    assert resting.rests == 2


async def test_a_rest_ends_when_the_next_look_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("conversations.claude.pace.asyncio.sleep", sleep)
    monkeypatch.setattr("conversations.claude.pace.time.monotonic", lambda: 100.0)
    one = Pace()
    await one.rest(99.97)
    await one.rest(99.0)
    # It is the common moment nearest to the pause's end; the second look is late already.
    assert abs(slept[0] - (one.seconds - 0.03)) <= one.seconds / 2
    assert slept[1] == 0.0


async def test_the_first_rest_of_an_answer_is_a_whole_pause_on_average(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []
    one, clock = Pace(), [100.0]

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("conversations.claude.pace.asyncio.sleep", sleep)
    monkeypatch.setattr("conversations.claude.pace.time.monotonic", lambda: clock[0])
    for _ in range(100):
        clock[0] += 1.01 * one.seconds
        await one.rest(clock[0])
    assert sum(slept) / len(slept) == pytest.approx(one.seconds, rel=0.05)


@pytest.mark.parametrize("early", [-0.02, -0.001, 0.0, 0.004])
async def test_a_read_at_a_moment_is_followed_by_one_a_whole_pause_later(
    early: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    one = Pace()
    clock = 1_000 * one.seconds + early

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("conversations.claude.pace.asyncio.sleep", sleep)
    monkeypatch.setattr("conversations.claude.pace.time.monotonic", lambda: clock)
    await one.rest(clock)
    assert slept == [pytest.approx(one.seconds - early)]


@pytest.mark.parametrize(("live", "moments"), [(1, 1), (10, 1), (50, 3), (200, MOMENTS)])
async def test_answers_are_read_at_the_same_moments(
    live: int, moments: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = set[float]()
    clock = [100.0]

    async def sleep(seconds: float) -> None:
        ends.add(round(clock[0] + seconds, 6))

    monkeypatch.setattr("conversations.claude.pace.asyncio.sleep", sleep)
    monkeypatch.setattr("conversations.claude.pace.time.monotonic", lambda: clock[0])
    one = Pace()
    for _ in range(live):
        one.begin()
    for number in range(100):
        await one.rest(clock[0] - one.seconds * number / 100)
    # Those that are due at once are read at once.
    assert len(ends) <= moments + 1
    assert moments == min(MOMENTS, 1 + live // TOGETHER)


async def test_a_loop_that_comes_late_looks_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]

    async def late(seconds: float) -> None:
        clock[0] += seconds + 0.1

    monkeypatch.setattr("conversations.claude.pace.asyncio.sleep", late)
    monkeypatch.setattr("conversations.claude.pace.time.monotonic", lambda: clock[0])
    one = Pace()
    usual = one.seconds
    await one.rest(100.0)
    assert one.seconds == pytest.approx(0.2)
    assert usual < 0.2


async def test_an_answer_is_read_less_often_only_beside_many() -> None:
    one, seconds = Pace(), list[float]()
    for _ in range(200):
        one.begin()
        seconds.append(one.seconds)
    assert len(set(seconds[:50])) == 1
    assert seconds[49:] == sorted(set(seconds[49:]))
    assert (seconds[49] < 0.06, seconds[99] <= 0.1, seconds[199] <= 0.2) == (True, True, True)
    for _ in range(200):
        one.end()
    assert one.seconds == seconds[0]


async def test_what_came_before_the_connection_was_lost_is_given_to_a_late_reader() -> None:
    """It was billed. The client drops with the connection what it has read and not given on."""
    is_lost = asyncio.Event()
    head = http("200 OK", SSE, "content-length: 100000")

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head + b"".join(event(each) for each in (*START, DELTA)))
        await writer.drain()
        await is_read.wait()
        writer.write(event(DELTA) * 3)
        await writer.drain()
        # The body is longer: the next that is read of it is an error.
        writer.close()
        is_lost.set()

    async def listen(claude: Claude) -> None:
        async with aclosing(claude.stream("{}")) as stream:
            async for item in stream:
                if isinstance(item, Piece):
                    given.extend(str(each["type"]) for each in item.events)
                    is_read.set()
                    await is_lost.wait()
                    # Long enough for the client to hear of it, were it listening.
                    await asyncio.sleep(0.05)

    is_read, given = asyncio.Event(), list[str]()
    async with raw(answer) as server, client(server.url) as claude, asyncio.timeout(60):
        with pytest.raises(ModelFailed) as failed:
            await listen(claude)
    assert failed.value.code == "cut"
    assert given.count("content_block_delta") == 4
