"""Where asked-for work goes, and that none of it waits for a broker."""

from __future__ import annotations

import asyncio
import json
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest
from celery.app.trace import build_tracer
from redis import Redis

from agentweb.celery import app
from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer
from conversations import tasks
from conversations.db import run_db
from conversations.models import Conversation, Turn
from conversations.runtime import dispatch
from tests.support import servers
from tests.support.running_turns import ended, queue, supervising
from tests.support.servers import Server
from tests.web.tabs import connected

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


@pytest.fixture(scope="module")
def redis() -> Iterator[Server]:
    running = servers.start_redis()
    yield running
    running.discard()


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorServer]:
    with server.start(pace=0) as running:
        yield running


@pytest.fixture(autouse=True)
def _worker_mode(redis: Server, emulator: EmulatorServer, settings: Any) -> Iterator[None]:
    settings.AGENTWEB_RUN_TURNS_IN = "worker"
    settings.ANTHROPIC_BASE_URL = emulator.url
    before = app.conf.broker_url
    send_by(redis.url)
    yield
    send_by(before)


def send_by(url: str) -> None:
    """Have the app connect to another broker than it may have connected to already."""
    app.conf.broker_url = app.conf.broker_write_url = url
    app._pool = app.amqp._producer_pool = None


def take_tasks(server: Server) -> list[Any]:
    """Take what lies in the queue of the workers."""
    with Redis.from_url(server.url) as client:
        rows = [json.loads(row) for row in reversed(client.lrange("agentweb", 0, -1))]
        client.flushall()
    return rows


def posted(server: Server) -> list[Any]:
    rows = take_tasks(server)
    return [(row["headers"]["task"], json.loads(b64decode(row["body"]))[0]) for row in rows]


async def test_a_worker_is_given_the_id_of_the_turn_and_nothing_else(redis: Server) -> None:
    dispatch.wake_turn(Turn(pk=7, conversation_id=1))
    dispatch.start_proposal(8)
    await asyncio.to_thread(lambda: dispatch._post.submit(lambda: None).result(100))
    assert await asyncio.to_thread(posted, redis) == [
        ("conversations.run_turn", [7]),
        ("conversations.propose", [8]),
    ]


@pytest.mark.parametrize("is_open", [True, False])
async def test_a_worker_is_told_the_language_of_open_pages(
    redis: Server, monkeypatch: pytest.MonkeyPatch, *, is_open: bool
) -> None:
    """It renders for them; where none is open there is nothing to render."""
    turn = await queue("Hello")
    conversation = await run_db(Conversation.objects.get, pk=turn.conversation_id)
    async with AsyncExitStack() as stack:
        if is_open:
            await stack.enter_async_context(connected(conversation))
        dispatch.wake_turn(turn)
    await asyncio.to_thread(lambda: dispatch._post.submit(lambda: None).result(100))
    [task] = await asyncio.to_thread(take_tasks, redis)
    given: list[Any] = []
    monkeypatch.setattr(tasks.supervisor, "work_off", lambda *found: given.append(found))
    # As a worker calls it: what came with the message is the request of the task.
    run = build_tracer("conversations.run_turn", tasks.run_turn, app=app)
    run(task["headers"]["id"], (turn.pk,), {}, request=task["headers"])
    assert given == [(turn.pk, "en" if is_open else None)]


async def test_nobody_waits_for_a_broker_that_is_away(
    redis: Server, caplog: pytest.LogCaptureFixture
) -> None:
    redis.kill()
    gate = threading.Event()
    held = dispatch._post.submit(gate.wait, 60)
    for number in range(50):
        dispatch.wake_turn(Turn(pk=number, conversation_id=1))
    assert not held.done()
    gate.set()
    await asyncio.to_thread(lambda: dispatch._post.submit(lambda: None).result(100))
    redis.start()
    assert "no broker" in caplog.text


async def test_a_task_that_comes_twice_runs_its_turn_once() -> None:
    turn = await queue("Hello")
    async with supervising() as supervisor:
        work_off = partial(asyncio.to_thread, supervisor.work_off, turn.pk)
        await asyncio.gather(*(work_off() for _ in range(3)))
        done = await ended(turn)
        await work_off()
    assert done.state == "done"
    assert (await run_db(Turn.objects.get, pk=turn.pk)).lease_generation == 1


async def test_a_process_that_runs_no_turns_says_so() -> None:
    with pytest.raises(RuntimeError, match=r"manage\.py worker"):
        tasks.run_turn(1)
    with pytest.raises(RuntimeError, match=r"manage\.py worker"):
        tasks.sweep()
