"""Sentinels before Redis: the server dies, its replica takes over, and nobody has to be told."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from conversations.operations.redis_address import connect_redis
from tests.rig.installations import Installation
from tests.rig.model import Model, saying
from tests.rig.scenes import LONG, SOME, started_chat, works
from tests.support import servers

pytestmark = pytest.mark.asyncio


@pytest.mark.only_mode("scaled", "embedded, there is no Redis")
async def test_a_replica_that_takes_over_is_found_and_nothing_is_lost(
    mode: str, models_of_the_run: dict[str, Model], rig_folder: Path
) -> None:
    model, login = models_of_the_run[mode], ["--requirepass", "pw", "--masterauth", "pw"]
    first = servers.start_redis(*login)
    second = servers.start_redis(*login, "--replicaof", "127.0.0.1", str(first.port))
    sentinel = servers.start_sentinel(first, "chats", "pw")
    url = sentinel.url.replace("//", "//:pw@")
    with connect_redis(url, 5) as redis:
        async with asyncio.timeout(120):
            while not redis.info("replication")["connected_slaves"]:
                await asyncio.sleep(0.1)
    with Installation.scaled(
        rig_folder, model, redis=sentinel, webs=1, workers=1, REDIS_URL=url
    ) as rig:
        chat = await started_chat(rig)
        held = model.hold(saying("Take over"), SOME)
        await chat.send(f"Take over: {LONG}")
        await held.came()
        first.kill()
        held.release()
        # The sentinel may not have noticed: the page finds the end by itself.
        assert await chat.ended(2, seconds=300) == "done"
        async with asyncio.timeout(300):
            while not is_used(second):
                await asyncio.sleep(0.1)
        await works(rig, chat, 300)


def is_used(server: servers.Server) -> bool:
    """Return whether a worker waits for tasks there, and web and worker for messages."""
    with connect_redis(server.url.replace("//", "//:pw@"), 5) as redis:
        waits = {client["cmd"] for client in redis.client_list()}
        return "brpop" in waits and len(redis.pubsub_channels()) > 1
