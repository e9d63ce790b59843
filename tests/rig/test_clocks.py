"""F45: a process whose clock is wrong, or jumps while it runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.rig.clocks import Clock
from tests.rig.installations import Installation
from tests.rig.model import Model, saying
from tests.rig.scenes import LONG, SOME, started_chat

pytestmark = pytest.mark.asyncio


async def test_f45_a_clock_that_jumps_while_an_answer_comes_ends_no_turn(
    rig: Installation, model: Model, tmp_path: Path
) -> None:
    process = (rig.workers or rig.webs)[0]
    others = [each for each in (rig.workers or rig.webs) if each is not process]
    clock = Clock(tmp_path / "clock")
    process.kill()
    process = await asyncio.to_thread(clock.start, rig, process)
    for hours in (2, -2):
        for each in others:
            each.pause()
        chat = await started_chat(rig)
        held = model.hold(saying(f"Jumping {hours}"), SOME)
        await chat.send(f"Jumping {hours}: {LONG}")
        await held.came()
        for each in others:
            each.resume()
        clock.set(hours)
        await asyncio.sleep(rig.lease + 1)
        held.release()
        assert await chat.ended(2) == "done"
        assert [turn["takeovers"] for turn in rig.turns(chat)] == [0, 0]
        clock.set(0)
        assert await chat.say("Back again") == "done"
        assert [turn["number"] for turn in rig.turns(chat)] == [1, 2, 3]
        await rig.check()
    process.kill()
    await asyncio.to_thread(rig.restart, process)
