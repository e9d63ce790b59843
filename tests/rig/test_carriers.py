"""F43 and F44: the tasks between web processes and workers arrive twice, late, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig import model as models
from tests.rig.client import Chat
from tests.rig.installations import Installation
from tests.rig.model import Barrier, Model, saying
from tests.rig.scenes import LONG, SCRIPT, SOME, replace, started_chat
from tests.support import servers

pytestmark = pytest.mark.asyncio


@pytest.fixture
def fragile(rig_folder: Path) -> Iterator[tuple[Installation, servers.Server]]:
    """Create a small rig whose broker can be stopped."""
    redis, model = servers.start_redis(), models.start(SCRIPT)
    with Installation.scaled(
        rig_folder, model, redis=redis, webs=1, workers=1, has_beat=False
    ) as rig:
        yield rig, redis
    redis.discard()
    model.stop()


@pytest.mark.only_mode("scaled", "embedded, there are no tasks")
async def test_f43_a_task_that_comes_twice_runs_its_turn_once(
    rig: Installation, model: Model
) -> None:
    chat = await started_chat(rig)
    held = model.hold(saying("Twice"), SOME)
    await chat.send(f"Twice: {LONG}")
    await held.came()
    turn = rig.turns(chat)[-1]
    await rig.acall("tests.rig.site_actions:run_turn", turn=turn["pk"], times=4)
    await asyncio.sleep(1)
    held.release()
    assert await chat.ended(2) == "done"
    await rig.acall("tests.rig.site_actions:run_turn", turn=turn["pk"], times=2)
    await asyncio.sleep(0.5)
    row = rig.turns(chat)[-1]
    assert (row["lease_generation"], row["takeovers"]) == (1, 0)
    assert held.count == 1
    await rig.check()


async def redelivering(rig: Installation, text: str, model: Model) -> tuple[Chat, Barrier]:
    """Start an answer whose task is delivered again, because it takes too long."""
    chat = await started_chat(rig)
    for worker in list(rig.workers):
        worker.kill()
        await asyncio.to_thread(rig.restart, worker, redelivers=1)
    held = model.hold(saying(text), SOME)
    await chat.send(f"{text}: {LONG}")
    await held.came()
    await rig.halts(f"task of {rig.turns(chat)[-1]['pk']}", 2)
    return chat, held


async def as_usual(rig: Installation) -> None:
    for worker in list(rig.workers):
        await asyncio.to_thread(replace, rig, worker)


@pytest.mark.only_mode("scaled", "embedded, there are no tasks")
async def test_f43_a_task_that_is_handed_out_again_while_its_turn_runs_does_nothing(
    rig: Installation, model: Model
) -> None:
    chat, held = await redelivering(rig, "Acknowledged late", model)
    held.release()
    assert await chat.ended(2) == "done"
    row = rig.turns(chat)[-1]
    assert (row["lease_generation"], row["takeovers"], held.count) == (1, 0, 1)
    await as_usual(rig)
    await rig.check()


@pytest.mark.only_mode("scaled", "embedded, there are no tasks")
async def test_f43_the_task_of_a_dead_worker_that_comes_back_asks_for_nothing_again(
    rig: Installation, model: Model
) -> None:
    chat, _ = await redelivering(rig, "Never acknowledged", model)
    asked = len(model.bodies())
    rig.runner(chat).kill()
    assert await chat.ended(2) == "interrupted"
    rows = rig.turns(chat)
    turn = rows[-1]["pk"]
    times = rig.halted().count(f"task of {turn}")
    await rig.acall("tests.rig.site_actions:run_turn", turn=turn, times=2)
    await rig.halts(f"task of {turn}", times + 2)
    rig.heal()
    await as_usual(rig)
    assert await chat.say("And on we go") == "done"
    assert rig.turns(chat)[:-1] == rows
    assert len(model.bodies()) == asked + 1
    await rig.check()


async def test_f44_without_a_broker_a_message_is_stored_and_answered_when_it_is_back(
    fragile: tuple[Installation, servers.Server],
) -> None:
    rig, redis = fragile
    chat = await started_chat(rig)
    redis.kill()
    for worker in rig.workers:
        worker.pause()
    answer = await chat.send("Stored without a broker")
    assert answer.status == 200
    assert rig.turns(chat)[-1]["state"] == "queued"
    redis.start()
    rig.heal()
    await chat.shows(lambda: chat.number == 2)
    assert await chat.ended(2) == "done"
    await rig.check()
