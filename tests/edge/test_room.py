"""What wears a process out: descriptors, a blocked loop, an application that is busy."""

from __future__ import annotations

import asyncio
import re

import psutil
import pytest

from tests.e2e.served import Served
from tests.edge.wire import Closed, Socket, code, connect, get

pytestmark = pytest.mark.asyncio


async def attempt(plain: Served) -> Socket | None:
    try:
        return await connect(f"ws://127.0.0.1:{plain.port}/", seconds=60)
    except (Closed, OSError):
        return None


async def test_without_descriptors_new_connections_are_closed_and_old_ones_live(
    plain: Served,
) -> None:
    first = await connect(f"ws://127.0.0.1:{plain.port}/")
    made = [each for each in [await attempt(plain) for _ in range(300)] if each is not None]
    assert 100 < len(made) < 200
    process = psutil.Process(plain.process.pid)
    # Some are left for the database, for files and for the model.
    assert process.num_fds() < 256 - 50
    busy = process.cpu_times()
    await asyncio.sleep(1)
    spent = process.cpu_times()
    assert spent.user + spent.system - busy.user - busy.system < 0.5
    assert first.closed is None
    first.send("still there")
    for each in made:
        each.abort()
    async with asyncio.timeout(60):
        while (again := await attempt(plain)) is None:
            await asyncio.sleep(0.1)
    assert b" 200 OK" in await get(plain, "/")
    await again.close()
    await first.close()
    assert plain.log.read_text().count("new connections are closed") == 1


async def test_a_blocked_loop_is_reported_once_with_its_place(plain: Served) -> None:
    # A busy machine may have held the loop in the tests before, too.
    start, tries = len(plain.log.read_text()), 0
    found: list[str] = []
    # It looks twice a second: a machine that stands still meanwhile may have it look too late.
    while not found and tries < 20:
        await get(plain, "/block/")
        tries += 1
        found = re.findall(r"the event loop has been busy.*", plain.log.read_text()[start:])
    assert len(found) == 1
    assert re.search(r"busy seconds=\S+ at=tests/edge/plain\.py:\d+:", found[0])


async def test_a_busy_application_is_not_queued_for_without_end(plain: Served) -> None:
    made = await connect(f"ws://127.0.0.1:{plain.port}/busy/")
    for _ in range(300):
        made.send("{}")
    assert await code(made) == 1008


async def test_whoever_gives_up_a_handshake_is_not_thought_about_any_longer(plain: Served) -> None:
    """In a storm there are others to be answered."""
    opening = asyncio.create_task(connect(f"ws://127.0.0.1:{plain.port}/undecided/", seconds=60))
    for word in ("undecided", "forgotten"):
        async with asyncio.timeout(60):
            while word not in plain.log.read_text():
                await asyncio.sleep(0.05)
        opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)
    assert "took too long" not in plain.log.read_text()
