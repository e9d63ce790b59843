"""Through the whole app: turns that go on from a checkpoint send what the log says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer
from conversations.audit.verify import Tally, verify_everything
from conversations.db import run_db
from conversations.log import loaded_path
from conversations.models import Conversation, Transformation, ViewCheckpoint
from tests.support.running_turns import accounted, run, supervising

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


@pytest.fixture
def emulator(settings: Any) -> Iterator[EmulatorServer]:
    with server.start(pace=0, record=True) as running:
        settings.ANTHROPIC_BASE_URL = running.url
        yield running


async def test_turns_from_checkpoints_are_verified_byte_for_byte(
    emulator: EmulatorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loaded_path, "EVERY", 4)
    saved: set[int] = set()
    async with supervising() as supervisor:
        turn = await run(supervisor, "Use 3 tools")
        conversation = turn.conversation
        await run_db(
            Conversation.objects.filter(pk=conversation.pk).update,
            policy={"max_conversation_messages": 6},
        )
        for at in range(6):
            turn = await run(supervisor, f"Use 3 tools, and again {at}", conversation)
            assert turn.state == "done"
            saved.update(await run_db(list, ViewCheckpoint.objects.values_list("seq", flat=True)))
    assert len(saved) > 2
    assert await run_db(lambda: Transformation.objects.filter(outcome="applied").count()) > 2
    await accounted(emulator)
    assert await run_db(lambda: list(verify_everything(Tally()))) == []
