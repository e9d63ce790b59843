"""Effort: chosen for a conversation or the site, sent with each reply, at a level the model has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer
from conversations.db import run_db
from conversations.models import Conversation
from conversations.turns.forks import fork_conversation
from tests.support.running_turns import is_valid, run, supervising

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


@pytest.fixture
def emulator(settings: Any) -> Iterator[EmulatorServer]:
    with server.start(pace=0, record=True) as running:
        settings.ANTHROPIC_BASE_URL = running.url
        yield running


def choose(conversation: Conversation, **fields: str) -> Conversation:
    Conversation.objects.filter(pk=conversation.pk).update(**fields)
    conversation.refresh_from_db()
    return conversation


async def test_the_chosen_effort_is_sent_with_every_reply(
    emulator: EmulatorServer, settings: Any
) -> None:
    async with supervising() as supervisor:
        turn = await run(supervisor, "Hello")
        chat = await run_db(choose, turn.conversation, effort="xhigh")
        await run(supervisor, "Again", chat)
        await run_db(choose, chat, model="claude-opus-4-6")
        await run(supervisor, "And now", chat)
        settings.AGENTWEB_EFFORT = "low"
        await run_db(choose, chat, effort="")
        last = await run(supervisor, "At last", chat)
    assert last.state == "done", last.error_text
    log = [row for row in emulator.emulator.log if row.path == "/v1/messages"]
    sent = [json.loads(row.body).get("output_config") for row in log]
    assert sent == [None, {"effort": "xhigh"}, {"effort": "high"}, {"effort": "low"}]
    await run_db(is_valid, chat)


async def test_a_fork_keeps_the_effort(emulator: EmulatorServer) -> None:
    async with supervising() as supervisor:
        turn = await run(supervisor, "Hello")
    await run_db(choose, turn.conversation, effort="max")
    fork = await run_db(lambda: fork_conversation(turn=turn))
    assert fork.effort == "max"
