"""Many messages of one person at once, on PostgreSQL: nobody else is refused or times out.

The full measure is AGENTWEB_TEST_FLOODS=20: twenty times a hundred messages.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

from tests.rig import model as models
from tests.rig.client import Chat
from tests.rig.installations import Installation
from tests.rig.model import Model
from tests.rig.scenes import SCRIPT, started_chat
from tests.support import prepared_databases, servers

pytestmark = pytest.mark.asyncio
REPEATS = int(os.environ.get("AGENTWEB_TEST_FLOODS", "0"))
#: More than a process has connections; a hundred in the full measure.
SENDS = 100 if REPEATS else 25


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    running = models.start(SCRIPT)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def rig(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    store = servers.start_postgres()
    url = prepared_databases.postgres(store)
    folder = tmp_path_factory.mktemp("flood")
    # A few are taken, so that the measure is of the messages and not of their answers.
    settings = {"DATABASE_URL": url, "AGENTWEB_MAX_LIVE_TURNS": "5"}
    with Installation.embedded(folder, model, **settings) as made:
        yield made
    store.discard()


async def visit(other: Chat, flood: asyncio.Future[object]) -> list[int]:
    """Open somebody's page as long as the flood goes on; return the statuses."""
    found: list[int] = []
    while not flood.done():
        found.append((await other.person.ask("GET", other.path)).status)
    return found


@pytest.mark.parametrize("number", range(REPEATS or 1))
async def test_many_messages_at_once_have_nobody_else_refused(
    rig: Installation, number: int
) -> None:
    other, chat = await started_chat(rig), await started_chat(rig)
    flood = asyncio.gather(
        *(chat.person.ask("POST", *make_message(chat, at)) for at in range(SENDS))
    )
    statuses, sent = await asyncio.gather(visit(other, flood), flood)
    assert statuses
    assert set(statuses) == {200}, statuses
    assert {answer.status for answer in sent} <= {200, 400, 409, 429}
    assert await other.say("Are you there?") == "done"
    output = rig.webs[0].tail(10_000_000)
    assert "couldn't get a connection" not in output
    assert "TooManyRequests" not in output
    # It has more turns than a new page begins with.
    await chat.person.close()
    await rig.check()
    await rig.close()


def make_message(chat: Chat, at: int) -> tuple[str, dict[str, str]]:
    """Return path and form of a message."""
    number = f"00000000-0000-4000-8000-{at:012d}"
    return f"{chat.path}send/", {"text": f"Number {at}", "client_id": number}
