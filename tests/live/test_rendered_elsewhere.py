"""What the process of a turn has rendered is shown by others as it is, where they can use it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from channels.layers import channel_layers

from agentweb.emulator import server
from conversations.agent.events import MeterMoved, RoundOpened
from conversations.claude.client import Claude, Deadlines
from conversations.context.view.envelope import build_envelope
from conversations.db import run_db
from conversations.live import publish
from conversations.live.hub import hub
from conversations.live.relay import ALL, Message, Relay, group_of, relay
from conversations.live.turn_stream import TurnDisplay
from conversations.log.page_version import read_versions
from conversations.models import Budget, Conversation
from conversations.runtime.adapters import TurnCalls
from tests.support import people_and_turns, servers, stored_turns
from tests.support.running_turns import ended, queue, supervising
from tests.support.servers import Server
from tests.web.fold import Page
from tests.web.tabs import ada_and_her_conversation, connected, frame_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
MARK = '<div id="elsewhere">rendered elsewhere</div>'


@pytest.fixture(scope="module")
def redis() -> Iterator[Server]:
    running = servers.start_redis()
    yield running
    running.discard()


@pytest.fixture
def _relayed(redis: Server, settings: Any) -> Iterator[None]:
    settings.REDIS_URL = redis.url
    backend = "conversations.live.layer.PipelinedLayer"
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": backend, "CONFIG": {"hosts": [redis.url]}}}
    channel_layers.backends = {}
    yield
    channel_layers.backends = {}


@asynccontextmanager
async def listening(
    conversation: Conversation, spent: list[Message] | None = None
) -> AsyncIterator[list[Message]]:
    """Collect what the relay of this process tells others about a conversation.

    What it tells all processes of spending goes to `spent`.
    """
    heard: list[Message] = []

    async def hear(message: Message) -> None:
        if message["type"] == "events":
            heard.append(message)
        elif message["type"] == "spent" and spent is not None:
            spent.append(message)

    async def ignore(_: Message) -> None:
        pass

    other = Relay()
    await other.start(hear)
    await relay.start(ignore)
    other.join(group_of(conversation.pk))
    async with asyncio.timeout(60):
        while group_of(conversation.pk) not in other._joined:
            await asyncio.sleep(0.01)
    try:
        yield heard
    finally:
        await relay.stop()
        await other.stop()


async def play(
    language: str | None, *behind: str, spent: list[Message] | None = None
) -> list[Message]:
    """Run a turn, and prompts that wait for it, for pages of another process; return the events."""
    person = await run_db(people_and_turns.person, f"p{language}")
    conversation = await run_db(
        lambda: Conversation.objects.create(owner=person, model=stored_turns.MODEL)
    )
    async with listening(conversation, spent) as heard, supervising() as supervisor:
        # Not before: the supervisor starts what it finds.
        turn = await queue("Hello", conversation)
        for text in behind:
            await queue(text, conversation)
        await asyncio.to_thread(supervisor.work_off, turn.pk, language)
        assert (await ended(turn)).state == "done"
        last = ["TurnClosed", {"turn": 1 + len(behind)}]
        async with asyncio.timeout(60):
            while not heard or heard[-1]["events"][-1] != last:
                await asyncio.sleep(0.01)
        if spent is not None:
            await hear_all(spent)
    return [one for one in heard if one["step"]]


async def hear_all(spent: list[Message]) -> None:
    """Wait until all that was told of spending until now is heard."""
    relay.send(ALL, {"type": "spent", "owner": 0, "but": None})
    async with asyncio.timeout(60):
        while not spent or spent[-1]["owner"]:
            await asyncio.sleep(0.01)
    del spent[-1]


@pytest.mark.usefixtures("_relayed")
async def test_a_turn_is_rendered_for_the_pages_that_wait_for_it(settings: Any) -> None:
    with server.start(pace=0) as emulator:
        settings.ANTHROPIC_BASE_URL, settings.AGENTWEB_TITLE_MODEL = emulator.url, "off"
        told = await play("de")
        untold = await play(None)
    assert [one["rendered"][1] for one in told] == ["de", "de"]
    assert 'id="turn-1"' in told[0]["rendered"][0]
    assert 'data-state="done"' in told[1]["rendered"][0]
    assert [one["step"] for one in untold] == [one["step"] for one in told]
    assert not any("rendered" in one for one in untold)


@pytest.mark.usefixtures("_relayed")
async def test_so_is_the_turn_that_waited_for_its_end(settings: Any) -> None:
    with server.start(pace=0) as emulator:
        settings.ANTHROPIC_BASE_URL, settings.AGENTWEB_TITLE_MODEL = emulator.url, "off"
        told = await play("es", "And then?")
    assert told[-1]["events"] == [["TurnClosed", {"turn": 2}]]
    assert told[-1]["rendered"][1] == "es"


@pytest.mark.usefixtures("_relayed")
async def test_all_are_told_of_spending_that_a_budget_counts(settings: Any) -> None:
    unlimited, limited = list[Message](), list[Message]()
    with server.start(pace=0) as emulator:
        settings.ANTHROPIC_BASE_URL, settings.AGENTWEB_TITLE_MODEL = emulator.url, "off"
        await play("de", spent=unlimited)
        site = {"scope": "site", "kind": "per_member", "unit": "money", "period": "day"}
        await run_db(lambda: Budget.objects.create(**site, limit=1_000_000))
        await play("es", spent=limited)
    assert unlimited == []
    assert limited
    assert len({one["owner"] for one in limited}) == 1


@pytest.mark.usefixtures("_relayed")
async def test_so_are_they_where_no_budget_counts_the_call_that_follows() -> None:
    """What a call has cost is held until the next one, which may be by another model."""
    lease, spent = await run_db(people_and_turns.started_turn), list[Message]()
    rule = {"scope": "site", "kind": "per_member", "unit": "tokens", "model": "haiku"}
    await run_db(lambda: Budget.objects.create(**rule, limit=1_000_000))
    claude = Claude(api_key="sk-ant-test", base_url=None, deadlines=Deadlines())
    display = TurnDisplay(lease)
    calls = TurnCalls(lease, claude, display=display)
    counted = build_envelope(model="claude-haiku-4-5", max_tokens=2_000, system="")
    following = RoundOpened(1, 2)
    try:
        async with listening(await run_db(people_and_turns.conversation_of, lease), spent):
            sent = await calls.open(await run_db(people_and_turns.sending, lease, counted))
            await calls.close(sent, people_and_turns.complete())
            await display.hold(MeterMoved())
            sending = await run_db(people_and_turns.sending, lease)
            await calls.open(replace(sending, opens=following))
            await display.publish(following)
            await hear_all(spent)
    finally:
        display.close()
    assert [one["owner"] for one in spent] == [lease.user_id]


@pytest.mark.usefixtures("_relayed")
async def test_what_is_too_long_for_redis_is_rendered_by_each_process(
    settings: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(publish, "MOST_SENT", 10)
    with server.start(pace=0) as emulator:
        settings.ANTHROPIC_BASE_URL, settings.AGENTWEB_TITLE_MODEL = emulator.url, "off"
        told = await play("en")
    assert [one["events"][-1][0] for one in told] == ["RoundOpened", "TurnClosed"]
    assert not any("rendered" in one for one in told)


@pytest.mark.parametrize("language", ["en", "fr"])
async def test_it_is_shown_as_it_is_on_pages_of_its_language(language: str) -> None:
    _, conversation = await ada_and_her_conversation()
    async with connected(conversation) as found:
        page = Page()
        page.take(await frame_of(found))
        before = (await run_db(read_versions, {conversation.pk}))[conversation.pk]
        lease = await run_db(lambda: people_and_turns.next_turn(conversation))
        message = {
            "type": "events", "conversation": conversation.pk, "at": None,
            "events": [["TurnOpened", {"turn": 2}]], "step": [before, lease.step[1]],
            "rendered": [MARK, language],
        }  # fmt: skip
        assert hub.find_language(conversation.pk) == "en"
        await publish.handle_message(message)
        frame = await frame_of(found)
    assert (MARK in frame) == (language == "en")
    assert ('id="turn-2"' in frame) == (language == "fr")
