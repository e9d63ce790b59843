"""Lines of work: each in its order, none behind another, and never more than there is room for."""

from __future__ import annotations

import asyncio
import logging

import pytest

from conversations.live.relay import InOrder

pytestmark = pytest.mark.asyncio


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class Work:
    """Work that is done when it is let; a piece is a line and a number."""

    def __init__(self, most: int = 100) -> None:
        self.begun: list[tuple[str, int]] = []
        self.done: list[tuple[str, int]] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.lines = InOrder(self.do, most)

    async def do(self, piece: tuple[str, int]) -> None:
        self.begun.append(piece)
        await self.gates.setdefault(piece[0], asyncio.Event()).wait()
        if piece[1] < 0:
            raise ValueError(piece)
        self.done.append(piece)

    async def put(self, *pieces: tuple[str, int]) -> None:
        for piece in pieces:
            await self.lines.put(piece[0], piece)

    def let(self, line: str) -> None:
        self.gates.setdefault(line, asyncio.Event()).set()


async def test_a_slow_line_holds_up_itself_alone() -> None:
    work = Work()
    work.let("quick")
    await work.put(("slow", 1), ("quick", 1), ("slow", 2), ("quick", 2), ("quick", 3))
    await settled()
    assert work.done == [("quick", 1), ("quick", 2), ("quick", 3)]
    assert ("slow", 2) not in work.begun
    work.let("slow")
    await settled()
    assert work.done[3:] == [("slow", 1), ("slow", 2)]


async def test_what_fails_is_logged_and_its_line_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    work = Work()
    work.let("a")
    with caplog.at_level(logging.ERROR, logger="agentweb.relay"):
        await work.put(("a", -1), ("a", 2))
        await settled()
    assert work.done == [("a", 2)]
    assert "was not understood" in caplog.text


async def test_a_line_that_was_worked_off_begins_anew() -> None:
    work = Work()
    work.let("a")
    await work.put(("a", 1))
    await settled()
    await work.put(("a", 2))
    await settled()
    assert work.done == [("a", 1), ("a", 2)]


async def test_who_brings_more_than_there_is_room_for_waits() -> None:
    work = Work(most=3)
    bringing = asyncio.create_task(work.put(*((name, 1) for name in "abcde")))
    await settled()
    assert [line for line, _ in work.begun] == ["a", "b", "c"]
    assert not bringing.done()
    work.let("b")
    await settled()
    assert [line for line, _ in work.begun] == ["a", "b", "c", "d"]
    for line in "acde":
        work.let(line)
    await bringing
    await settled()
    assert sorted(line for line, _ in work.done) == list("abcde")


async def test_a_stop_leaves_what_is_not_done() -> None:
    work = Work()
    await work.put(("a", 1), ("a", 2), ("b", 1))
    await settled()
    await work.lines.stop(5)
    for line in "ab":
        work.let(line)
    await settled()
    assert work.done == []
