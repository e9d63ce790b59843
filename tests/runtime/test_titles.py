"""Titles by the running app: made behind the first answer, never in its way, always accounted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer
from conversations.audit import verify
from conversations.db import run_db
from conversations.live.hub import hub
from conversations.models import (
    ApiCall,
    ApiModel,
    ApiResult,
    BudgetWindow,
    Conversation,
    ModelPrice,
    Turn,
    User,
)
from conversations.runtime import supervisor as supervisor_module
from conversations.turns import turns
from tests.support import people_and_turns
from tests.support.open_pages import opened, shown
from tests.support.running_turns import ended, queue, run, supervising, unrecorded, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


@pytest.fixture
def emulator(settings: Any) -> Iterator[EmulatorServer]:
    settings.AGENTWEB_TITLE_MODEL = "claude-haiku-5-5"
    with server.start(pace=0, record=True) as running:
        settings.ANTHROPIC_BASE_URL = running.url
        yield running
    assert hub._topics == {}


def titled(turn: Turn) -> bool:
    return Conversation.objects.filter(pk=turn.conversation_id, titled_by="model").exists()


def settled(status: str) -> bool:
    return ApiResult.objects.filter(call__purpose="title", status=status).exists()


def problems() -> list[str]:
    return [str(problem) for problem in verify.verify_everything(verify.Tally())]


async def test_the_first_answer_gives_the_conversation_its_title(
    emulator: EmulatorServer,
) -> None:
    turn = await queue("Please explain how sourdough bread rises overnight")
    await run_db(lambda: people_and_turns.limited(User.objects.get(), 50_000_000))
    with opened(turn.conversation_id, turn.conversation.version) as topic:
        async with supervising() as supervisor:
            await ended(turn)
            await until(lambda: titled(turn))
            second = await run(supervisor, "And then?", turn.conversation)
        frames = shown(topic)
    conversation = await run_db(Conversation.objects.get, pk=turn.conversation_id)
    assert conversation.title == "Explain how sourdough bread rises overnight"
    assert any('id="title"' in frame and "sourdough" in frame for frame in frames)
    assert second.state == "done"
    assert await run_db(ApiCall.objects.filter(purpose="title").count) == 1
    window = await run_db(BudgetWindow.objects.get)
    assert (window.spent, window.held) == (emulator.emulator.billed_micros, 0)
    assert await run_db(unrecorded, emulator) == []
    assert await run_db(problems) == []


def faulty(fault: str) -> str:
    """Put a model into the catalogue whose calls all suffer that fault."""
    name = f"claude-haiku-5-5+{fault}"
    model = ApiModel.objects.get(pk="claude-haiku-5-5")
    model.pk = name
    model.save(force_insert=True)
    for price in ModelPrice.objects.filter(model="claude-haiku-5-5"):
        price.pk, price.model_id = None, name
        price.save(force_insert=True)
    return name


async def test_a_title_that_hangs_holds_up_neither_the_answer_nor_the_end_of_the_server(
    emulator: EmulatorServer, settings: Any
) -> None:
    settings.AGENTWEB_TITLE_MODEL = await run_db(faulty, "hang_after:0")
    async with supervising() as supervisor:
        turn = await run(supervisor, "Tell me about rye")
        assert turn.state == "done"
        await until(ApiCall.objects.filter(purpose="title").exists)
    result = await run_db(ApiResult.objects.get, call__purpose="title")
    assert result.status == "stopped"
    assert not await run_db(titled, turn)
    assert await run_db(problems) == []


async def test_a_title_that_fails_leaves_the_first_words_and_one_call(
    emulator: EmulatorServer, settings: Any
) -> None:
    settings.AGENTWEB_TITLE_MODEL = await run_db(faulty, "overloaded")
    async with supervising() as supervisor:
        turn = await run(supervisor, "Tell me about rye")
        await until(lambda: settled("error"))
        again = await run(supervisor, "And wheat?", turn.conversation)
    assert (turn.state, again.state) == ("done", "done")
    assert turn.conversation.title == "Tell me about rye"
    assert await run_db(ApiCall.objects.filter(purpose="title").count) == 1
    assert await run_db(problems) == []


async def test_a_title_whose_process_died_is_closed_by_the_next_start(
    emulator: EmulatorServer, settings: Any
) -> None:
    settings.AGENTWEB_TITLE_MODEL = await run_db(faulty, "hang_after:0")
    async with supervising() as supervisor:
        await run(supervisor, "Tell me about rye")
        await until(ApiCall.objects.filter(purpose="title").exists)
        (task,) = supervisor._side_calls._running
        task.cancel()
        await asyncio.wait([task])
        assert await run_db(lambda: ApiCall.objects.filter(result=None).count()) == 1
        await supervisor.sweep()
        assert await run_db(lambda: ApiCall.objects.filter(result=None).count()) == 1
    async with supervising():
        assert await run_db(lambda: settled("lost"))
    assert await run_db(problems) == []


async def test_a_title_waits_while_many_turns_run(
    emulator: EmulatorServer, monkeypatch: Any
) -> None:
    monkeypatch.setattr(supervisor_module, "QUIET", 1)
    async with supervising() as supervisor:
        quiet, waits = supervisor._quiet, asyncio.Event()

        async def wait() -> bool:
            waits.set()
            return await asyncio.Event.wait(quiet)

        monkeypatch.setattr(quiet, "wait", wait)
        other = await queue("Answer in 2000 words emulator:pace=0.02")
        supervisor.wake(other.pk)
        await until(lambda: Turn.objects.filter(pk=other.pk, state="running").exists())
        await run(supervisor, "Hello")
        async with asyncio.timeout(120):
            await waits.wait()
        assert not await run_db(ApiCall.objects.filter(purpose="title").exists)
        await run_db(lambda: turns.request_stop(turn=Turn.objects.get(pk=other.pk)))
        supervisor.stop(other.pk)
        await until(ApiCall.objects.filter(purpose="title", result__isnull=False).exists)
