"""What a turn costs in counts that no machine changes: statements, transactions, thread hops."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.test import AsyncClient

from agentweb.bench.turn_probe import TurnProbe, watch_turns
from agentweb.emulator import server
from conversations import db
from conversations.live import turn_stream, watch
from conversations.models import Conversation, ToolCall, Turn
from conversations.runtime import dispatch
from conversations.runtime import supervisor as supervisor_module
from tests.support import people_and_turns, stored_turns
from tests.support.running_turns import ended, queue, supervising
from tests.web.tabs import connected, session_of

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.asyncio,
    pytest.mark.only_database("sqlite", "the embedded mode's"),
]
#: Statements and transactions of a later turn, from its POST to its last frame, and its thread hops
#: at most: on a busy machine there may be one less, because the client of the test shares a thread.
#: Two or three are the client's own. Of a title, from the end of its turn to its own.
PLAIN = (34, 4), 7
WITH_A_TOOL = (73, 9), 16
TITLE = (23, 3), 4


async def count_later_turn(monkeypatch: pytest.MonkeyPatch, settings: Any, text: str) -> TurnProbe:
    """Have two turns answered on an open page, and count the second."""
    # Later checkpoints of a draft depend on how long the answer takes.
    monkeypatch.setattr(turn_stream, "DRAFT_SECONDS", 60.0)
    # On a busy machine the beginning of a turn may be shown before its first call.
    monkeypatch.setattr(turn_stream, "HELD_SECONDS", 60.0)
    # Open pages are looked at in between.
    monkeypatch.setattr(watch, "SECONDS", 600.0)
    user = await db.run_db(people_and_turns.person)
    chat = await db.run_db(Conversation.objects.create, owner=user, model=stored_turns.MODEL)
    client = AsyncClient()
    await client.aforce_login(user)
    session = await db.run_db(session_of, user)
    with server.start(pace=0.02) as emulator:
        settings.ANTHROPIC_BASE_URL, settings.AGENTWEB_TITLE_MODEL = emulator.url, "off"
        async with supervising() as supervisor, connected(chat, session) as page:
            monkeypatch.setattr(dispatch, "supervisor", supervisor)

            async def ask(number: int, words: str) -> None:
                answer = await client.post(
                    f"/c/{chat.public_id}/send/", {"text": words}, headers={"HX-Request": "true"}
                )
                assert answer.status_code == 200
                while not _is_end(str(await page.receive_from(timeout=60)), number):
                    pass

            await ask(1, "Hello")
            with watch_turns() as probe:
                probe.keeps_statements = True
                await ask(2, text)
    assert await db.run_db(Turn.objects.filter(state="done").count) == 2
    return probe


def _is_end(frame: str, number: int) -> bool:
    return f'id="turn-{number}-status"' in frame and 'data-state="done"' in frame


def _demand_counts(probe: TurnProbe, wanted: tuple[tuple[int, int], int]) -> None:
    (statements, transactions), _ = wanted
    # Fewer where the process has cached the settings before.
    assert statements - 2 <= probe.counts["statements"] <= statements, "\n".join(probe.statements)
    assert probe.counts["transactions"] == transactions
    assert wanted[1] - 1 <= probe.counts["hops"] <= wanted[1]


async def test_a_later_turn_takes_so_many_statements_and_hops(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    probe = await count_later_turn(monkeypatch, settings, "And then?")
    _demand_counts(probe, PLAIN)


async def test_a_turn_with_a_tool_round_takes_so_many_statements_and_hops(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    probe = await count_later_turn(monkeypatch, settings, "What time is it in Tokyo?")
    _demand_counts(probe, WITH_A_TOOL)
    assert await db.run_db(ToolCall.objects.filter(state="ok").count) == 1


async def test_a_title_takes_so_many_statements_and_hops(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.AGENTWEB_TITLE_MODEL = "claude-haiku-5-5"
    # It waits until it is told to begin.
    monkeypatch.setattr(supervisor_module, "QUIET", 0)
    turn = await queue("Please explain how sourdough bread rises overnight")
    with server.start(pace=0) as emulator:
        settings.ANTHROPIC_BASE_URL = emulator.url
        async with supervising() as supervisor:
            await ended(turn)
            with watch_turns() as probe:
                probe.keeps_statements = True
                supervisor._quiet.set()
                while supervisor._side_calls._running:
                    await asyncio.sleep(0.01)
    assert await db.run_db(Conversation.objects.filter(titled_by="model").count) == 1
    _demand_counts(probe, TITLE)
