"""Messages that wait are run one after another, and not behind an answer that was stopped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer
from conversations.db import run_db
from conversations.live.hub import hub
from conversations.models import Draft, QueuedPrompt, Turn
from conversations.turns import turns
from conversations.turns.queue import send_next_prompt
from conversations.turns.versions import regenerate_answer
from tests.support import people_and_turns
from tests.support.running_turns import answer_text, ended, is_valid, queue, supervising, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorServer]:
    with server.start(pace=0) as running:
        yield running


@pytest.fixture(autouse=True)
def _served(emulator: EmulatorServer, settings: Any) -> Iterator[None]:
    settings.ANTHROPIC_BASE_URL = emulator.url
    yield
    assert hub._topics == {}


async def wait_behind(turn: Turn, text: str) -> None:
    await run_db(
        lambda: turns.send_prompt(conversation=turn.conversation, text=text, client_id=uuid4())
    )


async def test_each_good_end_starts_the_next_one() -> None:
    turn = await queue("Hello there")
    for text in ("Hello again", "Write the file plan.md with content: milk"):
        await wait_behind(turn, text)
    async with supervising():
        await until(lambda: Turn.objects.filter(state="done").count() == 3)
    rows = await run_db(
        lambda: list(Turn.objects.order_by("number").values_list("parent", flat=True))
    )
    assert rows == [0, 1, 2]
    assert not await run_db(QueuedPrompt.objects.exists)
    await run_db(is_valid, turn.conversation)


async def test_behind_a_stopped_answer_they_wait_until_they_are_sent() -> None:
    async with supervising() as supervisor:
        turn = await queue("Answer in 900 words emulator:pace=0.01")
        supervisor.wake(turn.pk)
        await until(lambda: Draft.objects.exclude(text="").exists())
        await wait_behind(turn, "Hello again")
        await run_db(turns.request_stop, turn=turn)
        supervisor.stop(turn.pk)
        assert (await ended(turn)).state == "cancelled"
        await supervisor.sweep()
        assert await run_db(QueuedPrompt.objects.count) == 1
        following = await run_db(send_next_prompt, conversation=turn.conversation)
        assert following is not None
        supervisor.wake(following.pk)
        assert (await ended(following)).state == "done"


async def test_what_became_a_turn_when_the_server_stopped_is_run_by_the_next_one() -> None:
    lease = await run_db(lambda: people_and_turns.started_turn(people_and_turns.person()))
    turn = await run_db(people_and_turns.turn_of, lease)
    await wait_behind(turn, "Hello again")
    await run_db(people_and_turns.answered, lease)
    async with supervising():
        await until(lambda: Turn.objects.filter(state="done").count() == 2)


async def test_another_answer_is_run_as_the_first_one_was() -> None:
    async with supervising() as supervisor:
        first = await queue("List my files")
        supervisor.wake(first.pk)
        first = await ended(first)
        again = await run_db(regenerate_answer, turn=first)
        supervisor.wake(again.pk)
        again = await ended(again)
    assert again.state == "done"
    assert await run_db(answer_text, again) == await run_db(answer_text, first)
    await run_db(is_valid, again.conversation)
