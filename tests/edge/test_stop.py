"""SIGTERM: what was asked is answered, and pages are told to come back. The last of its server."""

from __future__ import annotations

import asyncio

import pytest

from agentweb.edge.sockets import RESTARTING
from tests.e2e.served import Served
from tests.edge.wire import code, connect, get

pytestmark = pytest.mark.asyncio


async def test_told_to_stop_it_answers_what_it_has_and_tells_pages_to_come_back(
    plain: Served,
) -> None:
    made = [await connect(f"ws://127.0.0.1:{plain.port}/") for _ in range(20)]
    deaf = await connect(f"ws://127.0.0.1:{plain.port}/flood/")
    deaf.stop_reading()
    half = await asyncio.open_connection("127.0.0.1", plain.port)
    half[1].write(b"GET / HTT")
    asked = asyncio.create_task(get(plain, "/slow/"))
    async with asyncio.timeout(60):
        while "asked" not in plain.log.read_text():
            await asyncio.sleep(0.05)
    plain.process.terminate()
    assert {await code(each) for each in made} == {RESTARTING}
    assert b"at last" in await asked
    assert await asyncio.to_thread(plain.process.wait, 60) == 0
    log = plain.log.read_text()
    assert log.index("drained") < log.index("ended")
    assert "Traceback" not in log
    deaf.abort()
    half[1].close()
