"""Conversations with tools of the API never come to a request that is refused."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer
from conversations.claude.client import Claude, Deadlines
from tests.agent.served_conversations import ServedConversation
from tests.context.thorough import part

COUNT, PARTS = (1_000 if os.environ.get("AGENTWEB_TEST_THOROUGH") else 60), 4
#: What the conversations must have met, so that nothing holds for want of a case.
MET = {
    "pauses",
    "answers that begin with a result",
    "calls that wait beside ours",
    "turns that end while a call waits",
    "late calls left out",
    "cut by their limit",
    "stopped",
    "forks",
    "drop",
    "restore",
    "bills",
}


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorServer]:
    with server.start(pace=0, record=True) as running:
        yield running


@pytest_asyncio.fixture
async def claude(emulator: EmulatorServer) -> AsyncIterator[Claude]:
    client = Claude(
        api_key="sk-any", base_url=emulator.url, deadlines=Deadlines(first_event=60, attempt=60)
    )
    yield client
    await client.close()


@pytest.fixture(scope="module")
def met() -> Counter[str]:
    return Counter()


@pytest.mark.asyncio
@pytest.mark.parametrize("number", range(PARTS))
async def test_every_next_request_is_legal_and_every_bill_exact(
    number: int, emulator: EmulatorServer, claude: Claude, met: Counter[str]
) -> None:
    for seed in part(number, PARTS, COUNT):
        met += await ServedConversation(seed, claude, emulator).live()
    refused = [row for row in emulator.emulator.log if row.status not in (200, 0)]
    assert refused == []


def test_the_conversations_have_met_everything(met: Counter[str]) -> None:
    if not met:
        pytest.skip("run with the conversations")
    assert MET - {name for name, count in met.items() if count} == set()
