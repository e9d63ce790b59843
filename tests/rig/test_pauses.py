"""F36, and F30 again: processes that are paused for longer than their leases, and resume."""

from __future__ import annotations

import asyncio

import pytest

from tests.rig.installations import Installation
from tests.rig.model import Model, saying
from tests.rig.scenes import LONG, SOME, started_chat

pytestmark = pytest.mark.asyncio


async def test_f36_a_web_process_that_stood_still_is_in_step_again(
    rig: Installation, model: Model
) -> None:
    chat = await started_chat(rig)
    tabs = [chat, *[await chat.person.open(chat.path) for _ in range(3)]]
    held = model.hold(saying("Standing still"), SOME)
    await chat.send(f"Standing still: {LONG}")
    await held.came()
    web = rig.webs[0]
    web.pause()
    assert web.state == "T"
    await asyncio.sleep(rig.lease + 1)
    held.release()
    await asyncio.sleep(0.5)
    web.resume()
    for tab in tabs:
        # There is no other process to take the turn over.
        assert await tab.ended(2) == "done"
    await rig.check()


@pytest.mark.only_mode("scaled", "embedded, there is nobody who could take the turn")
async def test_f30_a_worker_that_comes_back_after_its_lease_writes_nothing(
    rig: Installation, model: Model
) -> None:
    chat = await started_chat(rig)
    held = model.hold(saying("Fenced"), SOME)
    await chat.send(f"Fenced: {LONG}")
    await held.came()
    worker = rig.runner(chat)
    worker.pause()
    assert await chat.ended(2, seconds=rig.lease + 90) == "interrupted"
    rows = rig.turns(chat)
    held.release()
    worker.resume()
    async with asyncio.timeout(60):
        while "lost its lease" not in worker.tail():
            await asyncio.sleep(0.1)
    assert rig.turns(chat) == rows
    await rig.check()
    assert await chat.say("And on we go") == "done"


@pytest.mark.only_mode("scaled", "embedded, there is nobody who could take the turn")
async def test_f30_a_tool_whose_worker_stood_still_does_not_act_twice(
    rig: Installation, model: Model
) -> None:
    chat = await started_chat(rig)
    held = model.hold(saying("please fire"), 0)
    await chat.send("please fire")
    await held.came()
    worker, before = rig.runner(chat), len(rig.ran())
    worker.pause()
    held.release()
    await chat.ended(2, seconds=rig.lease + 90)
    worker.resume()
    await asyncio.sleep(1)
    assert len(rig.ran()) == before
    await rig.check()
