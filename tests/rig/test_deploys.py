"""F37 and F42: processes that are stopped while they work, and a second one on the same data."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.rig.client import Chat
from tests.rig.installations import Installation
from tests.rig.model import Model, saying
from tests.rig.processes import Process
from tests.rig.scenes import LONG, SOME, started_chat

pytestmark = pytest.mark.asyncio
PEOPLE = 3
#: Processes of each kind that are stopped: twenty in all. AGENTWEB_TEST_DEPLOYS sets more.
DEPLOYS = int(os.environ.get("AGENTWEB_TEST_DEPLOYS", "7"))
#: People with an answer on its way while all processes are restarted, and its seconds.
ROLLING = int(os.environ.get("AGENTWEB_TEST_ROLLING", "4"))
ROLLING_SECONDS = int(os.environ.get("AGENTWEB_TEST_ROLLING_SECONDS", "5"))


async def end(rig: Installation, process: Process) -> None:
    """Let a process end by itself, and start the next one."""
    process.terminate()
    assert await asyncio.to_thread(process.wait) == 0
    await asyncio.to_thread(rig.restart, process)


WORKERS = pytest.param(
    "workers", marks=pytest.mark.only_mode("scaled", "embedded, there are no workers")
)


@pytest.mark.parametrize("kind", ["webs", WORKERS])
async def test_f37_deploys_under_load_lose_nothing_and_end_well(
    rig: Installation, kind: str
) -> None:
    chats = [await started_chat(rig) for _ in range(PEOPLE)]
    for number in range(DEPLOYS):
        text = f"Message {number}: answer in 60 words emulator:pace=0.002"
        talks = [asyncio.create_task(chat.send(text)) for chat in chats]
        await asyncio.wait(talks, return_when=asyncio.FIRST_COMPLETED)
        there = getattr(rig, kind)
        await end(rig, there[number % len(there)])
        for answer in await asyncio.gather(*talks):
            assert answer.status in (200, 409), answer.text[:300]
    await rig.rest()
    assert {turn["state"] for turn in rig.turns()} <= {"done", "interrupted", "cancelled", "failed"}
    if kind == "webs":
        assert all(chat.opened > 1 for chat in chats)
    await rig.check()


async def test_f37_an_answer_that_can_end_in_time_does_so_before_its_process(
    rig: Installation, model: Model
) -> None:
    chat = await started_chat(rig)
    held = model.hold(saying("In time"), SOME)
    await chat.send(f"In time: {LONG}")
    await held.came()
    process = rig.runner(chat)
    process.terminate()
    await asyncio.sleep(0.5)
    held.release()
    assert await asyncio.to_thread(process.wait) == 0
    assert [turn["state"] for turn in rig.turns(chat)] == ["done", "done"]
    await asyncio.to_thread(rig.heal)
    assert await chat.ended(2) == "done"
    await rig.check()


async def test_f37_a_turn_between_two_calls_goes_on_in_the_next_process(
    rig: Installation, model: Model
) -> None:
    chat = await started_chat(rig)
    held = model.hold(saying("please put"), 0)
    await chat.send("please put")
    await held.came()
    process, before = rig.runner(chat), len(model.bodies())
    process.terminate()
    await asyncio.sleep(0.3)
    held.release()
    assert await asyncio.to_thread(process.wait) == 0
    await asyncio.to_thread(rig.heal)
    assert await chat.ended(2) == "done"
    assert "put has run" in chat.text(2)
    # The answer with the call, and the next one: no request was made twice.
    assert len(model.bodies()) == before + 1
    await rig.check()


@pytest.mark.only_mode("scaled", "embedded, the one process takes its answers with it")
async def test_a_rolling_restart_of_all_processes_cuts_no_answer(
    mode: str, models_of_the_run: dict[str, Model], rig_folder: Path
) -> None:
    model, words = models_of_the_run[mode], ROLLING_SECONDS * 10
    before = len(model.bodies())
    text = f"answer in {words} words emulator:pace=0.1"
    # The drain time that the product has by default, not the short one of these tests.
    with Installation.scaled(rig_folder, model, AGENTWEB_WORKER_DRAIN_SECONDS="600") as rig:
        people = rig.persons(ROLLING)
        chats = await asyncio.gather(*(one.begin(f"First, {text}") for one in people))
        talks = asyncio.gather(*(talk(chat, text) for chat in chats))
        await asyncio.gather(*(chat.shows(lambda c=chat: len(c.text()) > 200) for chat in chats))
        for process in rig.processes:
            await end(rig, process)
        assert await talks == [["done", "done"]] * ROLLING
        # Each answer was asked for once: none was cut and continued.
        assert len(model.bodies()) - before == len(rig.turns()) == 2 * ROLLING
        assert all(chat.opened > 1 for chat in chats)
        await rig.check()


async def talk(chat: Chat, text: str) -> list[str]:
    """Wait for the answer on its way, and ask again at once."""
    first = await chat.ended(seconds=600)
    return [first, await chat.say(f"Again, {text}", seconds=600)]


@pytest.mark.only_mode("embedded", "PostgreSQL is for many")
async def test_f42_a_second_server_on_the_same_data_is_refused(rig: Installation) -> None:
    second = rig.template.start(
        "second", "tests.rig.roles:manage", rig.folder / "second.log",
        arguments=["serve", "--port", str(rig.ports[0] + 1)],
    )  # fmt: skip
    assert await asyncio.to_thread(second.wait) == 1
    assert "another agentweb already serves" in second.tail()
    assert await (await rig.person().begin("Hello")).ended() == "done"
    await rig.check()
