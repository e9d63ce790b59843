"""A thousand pages connect at once: their waiting delays nobody else."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack
from typing import Any

import pytest

from conversations.accounts.sessions import find_session_user
from conversations.agent.events import BudgetMoved
from conversations.db import PAGE_THREADS, THREADS, find_page_slots, run_db, run_db_page_read
from conversations.live import consumer
from conversations.live.hub import hub
from conversations.live.publish import publish
from tests.web.tabs import (
    ada_and_her_conversation,
    connected,
    frame_of,
    is_accepted,
    session_of,
    socket,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


async def test_a_socket_opens_while_snapshots_are_waited_for() -> None:
    """A page gives up a handshake after seconds, so the handshake must not wait for snapshots."""
    _, conversation = await ada_and_her_conversation()
    key = await run_db(session_of, await run_db(lambda: conversation.owner))
    gate = threading.Event()
    busy = [asyncio.ensure_future(run_db(gate.wait, 90)) for _ in range(THREADS)]
    busy += [asyncio.ensure_future(run_db_page_read(gate.wait, 90)) for _ in range(PAGE_THREADS)]
    found = socket(f"/ws/c/{conversation.public_id}/", key)
    try:
        accepted, _ = await found.connect(timeout=60)
        assert accepted
        assert not any(task.done() for task in busy)
        gate.set()
        assert 'id="turn-1"' in await frame_of(found)
        await found.disconnect()
    finally:
        gate.set()
        await asyncio.gather(*busy)


async def test_what_a_page_missed_is_not_read_when_it_is_gone() -> None:
    gate, read = threading.Event(), []
    busy = [asyncio.ensure_future(run_db_page_read(gate.wait, 90)) for _ in range(PAGE_THREADS)]
    gone = [asyncio.ensure_future(run_db_page_read(read.append, number)) for number in range(20)]
    await asyncio.sleep(0)
    for task in gone:
        task.cancel()
    await asyncio.gather(*gone, return_exceptions=True)
    there = asyncio.ensure_future(run_db_page_read(read.append, "there"))
    gate.set()
    await asyncio.gather(*busy, there)
    assert read == ["there"]


async def test_who_opens_a_socket_does_not_wait_for_who_opens_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    two = threading.Barrier(2)

    def meet(session: Any) -> Any:
        """Find the person only once two have arrived."""
        two.wait(60)
        return find_session_user(session)

    monkeypatch.setattr(consumer, "find_session_user", meet)
    user, conversation = await ada_and_her_conversation()
    path, key = f"/ws/c/{conversation.public_id}/", await run_db(session_of, user)
    assert await asyncio.gather(*(is_accepted(socket(path, key)) for _ in range(2))) == [True] * 2


async def test_what_a_conversation_is_told_does_not_wait_for_a_page_in_the_queue() -> None:
    _, conversation = await ada_and_her_conversation()
    async with connected(conversation) as first:
        assert 'id="turn-1"' in await frame_of(first)
        async with AsyncExitStack() as storm:
            for _ in range(PAGE_THREADS):
                await storm.enter_async_context(find_page_slots())
            async with connected(conversation) as second:
                while len(hub.list_open()[conversation.pk].readers) < 2:
                    await asyncio.sleep(0)
                await publish(conversation.pk, BudgetMoved())
                assert 'id="budget"' in await frame_of(first)
                assert await second.receive_nothing()
                await storm.aclose()
                assert 'id="turn-1"' in await frame_of(second)
