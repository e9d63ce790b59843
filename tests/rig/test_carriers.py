"""F43 and F44: the tasks between web processes and workers come twice, late, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import servers
from tests.rig import model as models
from tests.rig.conftest import SCRIPT
from tests.rig.model import Model, saying
from tests.rig.rigs import Rig
from tests.rig.scenes import LONG, SOME, begun

pytestmark = pytest.mark.asyncio


@pytest.fixture
def fragile(rig_folder: Path) -> Iterator[tuple[Rig, servers.Server]]:
    """Give a small rig whose broker may be stopped."""
    redis, model = servers.start_redis(), models.start(SCRIPT)
    with Rig.scaled(rig_folder, model, redis=redis, webs=1, workers=1, has_beat=False) as rig:
        yield rig, redis
    redis.discard()
    model.stop()


async def test_f43_a_task_that_comes_twice_runs_its_turn_once(rig: Rig, model: Model) -> None:
    if not rig.workers:
        pytest.skip("embedded, there are no tasks")
    chat = await begun(rig)
    held = model.hold(saying("Twice"), SOME)
    await chat.send(f"Twice: {LONG}")
    await held.came()
    turn = rig.turns(chat)[-1]
    await rig.acall("tests.rig.hands:run_turn", turn=turn["pk"], times=4)
    await asyncio.sleep(1)
    held.release()
    assert await chat.ended(2) == "done"
    await rig.acall("tests.rig.hands:run_turn", turn=turn["pk"], times=2)
    await asyncio.sleep(0.5)
    row = rig.turns(chat)[-1]
    assert (row["lease_generation"], row["takeovers"]) == (1, 0)
    assert held.count == 1
    await rig.check()


async def test_f44_without_a_broker_a_message_is_stored_and_answered_when_it_is_back(
    fragile: tuple[Rig, servers.Server],
) -> None:
    rig, redis = fragile
    chat = await begun(rig)
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
