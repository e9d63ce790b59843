"""F38 to F41: a turn that kills its processes, memory, descriptors, a blocked event loop."""

from __future__ import annotations

import asyncio
import time

import pytest

from conversations.turns.takeovers import MOST_TAKEOVERS
from tests.rig.installations import Installation
from tests.rig.model import Model
from tests.rig.processes import Process
from tests.rig.scenes import replace, started_chat

pytestmark = pytest.mark.asyncio
POISON = "tests.support.toy_tools:_note:after"


def runners(rig: Installation) -> list[Process]:
    """Return the processes that run turns."""
    return list(rig.workers or rig.webs)


async def test_f38_a_turn_that_kills_its_processes_is_given_up_and_others_run(
    rig: Installation, model: Model
) -> None:
    chat, other = await started_chat(rig), await started_chat(rig)
    for process in runners(rig):
        process.kill()
        rig.restart(process, halts=[POISON])
    before = rig.halted().count(POISON)
    await chat.send("please put")
    for number in range(1 + MOST_TAKEOVERS):
        await rig.halts(POISON, before + number + 1)
        victim = rig.runner(chat)
        victim.kill()
        await asyncio.to_thread(rig.restart, victim, halts=[POISON])
    assert await chat.ended(2, seconds=rig.lease + 90) == "failed"
    turn = rig.turns(chat)[-1]
    assert (turn["finish_reason"], turn["takeovers"]) == ("poison", 1 + MOST_TAKEOVERS)
    for process in runners(rig):
        await asyncio.to_thread(replace, rig, process)
    assert await other.say("Are you there?") == "done"
    await rig.check()


async def test_f39_a_process_at_its_limit_of_memory_fails_the_call_and_nothing_else(
    rig: Installation, model: Model
) -> None:
    for process in runners(rig):
        process.kill()
        rig.restart(process, limits={"RLIMIT_AS": 4 * 2**30})
    chat = await started_chat(rig)
    assert await chat.say("please gorge") == "done"
    assert "bytes were there" not in chat.text(2)
    assert await chat.say("And now something small") == "done"
    if not rig.workers:
        assert rig.call("tests.rig.site_actions:run", statement="PRAGMA integrity_check") == [
            ["ok"]
        ]
    await rig.check()
    for process in runners(rig):
        await asyncio.to_thread(replace, rig, process)


async def test_f40_without_descriptors_new_sockets_are_refused_and_old_ones_live(
    rig: Installation, model: Model
) -> None:
    web = rig.webs[0]
    web.kill()
    web = rig.restart(web, limits={"RLIMIT_NOFILE": 256})
    ports = [rig.ports[0]]
    person = rig.person(ports=ports)
    chat = await person.begin("Hello")
    assert await chat.ended() == "done"
    held = web.descriptors
    opened = await asyncio.gather(
        *(asyncio.open_connection("127.0.0.1", ports[0]) for _ in range(400)),
        return_exceptions=True,
    )
    try:
        assert await chat.say("Are you there?") == "done"
        assert chat.opened == 1
        assert web.descriptors <= 256
    finally:
        for each in opened:
            if not isinstance(each, BaseException):
                each[1].close()
    deadline = time.monotonic() + 60
    while web.descriptors > held + 8:
        assert time.monotonic() < deadline, (web.descriptors, held)
        await asyncio.sleep(0.1)
    assert await (await rig.person(ports=ports).begin("And I?")).ended() == "done"
    await rig.check()
    await asyncio.to_thread(replace, rig, web)


async def test_f41_a_tool_that_blocks_its_thread_holds_nobody(
    rig: Installation, model: Model
) -> None:
    chat, other = await started_chat(rig), await started_chat(rig)
    # All turns are in one process, the server or a worker.
    busy, *idle = runners(rig)
    for process in idle:
        process.pause()
    before = len(busy.tail(1_000_000))
    await chat.send("please block")
    await other.send("Answer in 50 words")
    await other.shows(lambda: other.number == 2)
    assert await other.ended(2) == "done"
    assert await chat.ended(2) == "done"
    assert all(rig.runner(each) is busy for each in (chat, other))
    assert "the event loop has been busy" not in busy.tail(1_000_000)[before:]
    rig.heal()
    await rig.check()
