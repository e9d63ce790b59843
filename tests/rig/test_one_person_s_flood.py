"""A hundred messages of one person at once, on PostgreSQL: nobody else is refused or times out.

AGENTWEB_TEST_FLOODS says how many times; the full measure is 20.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

from tests.rig import model as models
from tests.rig.client import Chat, Person
from tests.rig.model import Model
from tests.rig.rigs import Rig
from tests.rig.scenes import SCRIPT, started_chat
from tests.support import prepared_databases, servers

pytestmark = pytest.mark.asyncio
REPEATS, SENDS = int(os.environ.get("AGENTWEB_TEST_FLOODS", "1")), 100


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    running = models.start(SCRIPT)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def rig(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    store = servers.start_postgres()
    url = prepared_databases.postgres(store)
    with Rig.embedded(tmp_path_factory.mktemp("flood"), model, DATABASE_URL=url) as made:
        yield made
    store.discard()


async def visit(others: list[Person], path: list[str], flood: asyncio.Future[object]) -> list[int]:
    """Open pages of other people as long as the flood goes on; return the statuses."""
    found: list[int] = []
    while not flood.done():
        for person, page in zip(others, path, strict=True):
            found.append((await person.ask("GET", page)).status)
    return found


async def test_a_hundred_messages_at_once_refuse_nobody_else(rig: Rig) -> None:
    others = [await started_chat(rig) for _ in range(2)]
    for _ in range(REPEATS):
        chat = await started_chat(rig)
        flood = asyncio.gather(
            *(chat.person.ask("POST", *make_message(chat, at)) for at in range(SENDS))
        )
        statuses, sent = await asyncio.gather(
            visit([each.person for each in others], [each.path for each in others], flood), flood
        )
        assert statuses
        assert set(statuses) == {200}, statuses
        assert {answer.status for answer in sent} <= {200, 400, 409, 429}, [a.status for a in sent]
        assert await others[0].say("Are you there?") == "done"
        await rig.rest(240)
        # More turns than a new page begins with.
        await chat.person.close()
    output = rig.webs[0].tail(10_000_000)
    assert "couldn't get a connection" not in output
    assert "TooManyRequests" not in output
    await rig.check()
    await rig.close()


def make_message(chat: Chat, at: int) -> tuple[str, dict[str, str]]:
    """Return path and form of a message."""
    number = f"00000000-0000-4000-8000-{at:012d}"
    return f"{chat.path}send/", {"text": f"Number {at}", "client_id": number}
