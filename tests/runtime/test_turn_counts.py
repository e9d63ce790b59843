"""What a turn costs in counts that no machine changes: statements, transactions, thread hops."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from asgiref.testing import ApplicationCommunicator
from django.core.signals import request_started
from django.db import close_old_connections, reset_queries

from agentweb import asgi
from agentweb.bench.turn_probe import TurnProbe, watch_turns
from agentweb.emulator import server
from conversations import db
from conversations.alerts.delivery import deliver_alerts
from conversations.live import draft_batches, turn_stream, watch
from conversations.models import Conversation, ToolCall, Turn
from conversations.runtime import dispatch
from conversations.runtime import supervisor as supervisor_module
from tests.support import people_and_turns, stored_turns
from tests.support.running_turns import ended, queue, supervising
from tests.web.tabs import HOST, ada_and_her_conversation, connected, frame_of, session_of

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.asyncio,
    pytest.mark.only_database("sqlite", "the embedded mode's"),
]
#: Statements and transactions of a later turn, from its POST to its last frame, and its thread
#: hops: its request, its claim, the call opened, the first words saved, the call closed. Of a
#: title, from the end of its turn to its own.
PLAIN = (34, 4), 5
WITH_A_TOOL = (73, 9), 14
TITLE = (23, 3), 4


@pytest.fixture(autouse=True)
def _served() -> Iterator[None]:
    """Have a request begin as on a server: test clients, and who counts queries, connect these."""
    receivers = (close_old_connections, reset_queries)
    connected_again = [one for one in receivers if request_started.disconnect(one)]
    yield
    for one in connected_again:
        request_started.connect(one)


async def count_later_turn(monkeypatch: pytest.MonkeyPatch, settings: Any, text: str) -> TurnProbe:
    """Have two turns answered on an open page, and count the second."""
    # Later checkpoints of a draft depend on how long the answer takes.
    monkeypatch.setattr(draft_batches, "DRAFT_SECONDS", 60.0)
    # On a busy machine the beginning of a turn may be shown before its first call.
    monkeypatch.setattr(turn_stream, "HELD_SECONDS", 60.0)
    # Open pages are looked at in between.
    monkeypatch.setattr(watch, "SECONDS", 600.0)
    user = await db.run_db(people_and_turns.person)
    chat = await db.run_db(Conversation.objects.create, owner=user, model=stored_turns.MODEL)
    session = await db.run_db(session_of, user)
    with server.start(pace=0.02) as emulator:
        settings.ANTHROPIC_BASE_URL, settings.AGENTWEB_TITLE_MODEL = emulator.url, "off"
        async with supervising() as supervisor, connected(chat, session) as page:
            monkeypatch.setattr(dispatch, "supervisor", supervisor)

            async def ask(number: int, words: str) -> None:
                assert await _post(f"/c/{chat.public_id}/send/", {"text": words}, session) == 200
                while not _is_end(str(await page.receive_from(timeout=60)), number):
                    pass

            await ask(1, "Hello")
            with watch_turns() as probe:
                probe.keeps_statements = True
                await ask(2, text)
    assert await db.run_db(Turn.objects.filter(state="done").count) == 2
    return probe


async def _post(path: str, form: dict[str, str], session: str) -> int:
    """Post a form as a page does, to the application that a server serves; return the status."""
    token = "x" * 32
    headers = {
        "host": HOST, "cookie": f"csrftoken={token}; sessionid={session}", "x-csrftoken": token,
        "hx-request": "true", "content-type": "application/x-www-form-urlencoded",
    }  # fmt: skip
    scope = {
        "type": "http", "method": "POST", "path": path, "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip
    client: Any = ApplicationCommunicator(asgi.application, scope)
    await client.send_input({"type": "http.request", "body": urlencode(form).encode()})
    began = await client.receive_output(60)
    await client.receive_output(60)
    await client.wait(60)
    return int(began["status"])


def _is_end(frame: str, number: int) -> bool:
    return f'id="turn-{number}-status"' in frame and 'data-state="done"' in frame


def _demand_counts(probe: TurnProbe, wanted: tuple[tuple[int, int], int]) -> None:
    (statements, transactions), _ = wanted
    # Fewer where the process has cached the settings before.
    assert statements - 2 <= probe.counts["statements"] <= statements, "\n".join(probe.statements)
    assert probe.counts["transactions"] == transactions
    assert probe.counts["hops"] == wanted[1]


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


async def test_what_is_done_beside_turns_takes_few_hops() -> None:
    _, chat = await ada_and_her_conversation()
    async with supervising() as supervisor:
        with watch_turns() as probe:
            async with connected(chat) as page:
                await frame_of(page)
                opened = probe.counts["hops"]
                await watch.watch.check()
                assert probe.counts["hops"] == opened + 1
            assert probe.counts["hops"] == opened + 1, "a page that leaves takes none"
            statements = probe.counts["statements"]
            await supervisor.sweep()
            assert probe.counts["hops"] == opened + 2
            assert probe.counts["statements"] == statements + 1, "there is nothing to do"
            await deliver_alerts()
            assert probe.counts["hops"] == opened + 3


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
