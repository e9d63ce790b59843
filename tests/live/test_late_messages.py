"""What another process tells is heard late, in part, or never: a page shows no less than it did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from channels.testing import WebsocketCommunicator

from conversations.db import run_db
from conversations.live import publish
from conversations.live.hub import hub
from conversations.live.relay import Message, Relay
from conversations.models import Conversation
from conversations.transcript import paging
from tests.support import people_and_turns
from tests.web.fold import Page
from tests.web.tabs import ada_and_her_conversation, connected, frame_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]

GROWN = {"round": 1, "thinking": "again", "closed": "<p>again</p>", "tail": "again"}


@pytest.fixture(autouse=True)
def _left() -> Iterator[None]:
    yield
    assert hub._topics == {}


@pytest.fixture
def _others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be one of several processes; what this one says nobody hears."""
    other = Relay()
    other._layer = object()
    monkeypatch.setattr(publish, "relay", other)


async def hear(conversation: Conversation, name: str, at: int, turn: int, **fields: Any) -> None:
    """Hear what a turn tells as its event number so much."""
    message = {"type": "event", "conversation": conversation.pk, "name": name}
    await publish.hear(message | {"event": {"turn": turn, **fields}, "place": [turn, 1, at]})


async def in_step(page: Page, found: WebsocketCommunicator, conversation: Conversation) -> None:
    """Give the page all frames that it was sent so far."""
    topic = hub.find(conversation.pk)
    assert topic is not None
    while True:
        # A snapshot has all that was published until then, and so this is not sent.
        word = f"<i>{topic.position}</i>"
        topic.publish(word)
        page.take(frame := await frame_of(found))
        if word in frame:
            return


async def test_words_that_come_later_than_the_end_they_belong_to_are_not_shown_again() -> None:
    """Another process told them, and died before it told the end."""
    _, conversation = await ada_and_her_conversation()
    async with connected(conversation) as found:
        page = Page()
        page.take(await frame_of(found))
        before = page.text("turn-1")
        await hear(conversation, "TurnChanged", 6, turn=1)
        await hear(conversation, "RoundOpened", 7, turn=1, round=1)
        await hear(conversation, "TextGrew", 8, turn=1, **GROWN)
        await in_step(page, found, conversation)
    assert page.text("turn-1") == before
    assert len(set(page.root.ids())) == len(page.root.ids())


@pytest.mark.usefixtures("_others")
@pytest.mark.parametrize("first", ["TurnOpened", "TurnChanged", "TurnClosed"])
async def test_a_page_that_hears_of_a_turn_when_it_is_over_is_given_all_and_keeps_it(
    first: str,
) -> None:
    """So much is said that it comes late, and what comes behind it is dropped."""
    _, conversation = await ada_and_her_conversation()
    async with connected(conversation) as found:
        page = Page()
        page.take(await frame_of(found))
        lease = await run_db(lambda: people_and_turns.next_turn(conversation))
        await publish.renew(conversation.pk)
        await in_step(page, found, conversation)
        if first != "TurnOpened":
            await hear(conversation, "TurnOpened", 1, turn=2)
            await in_step(page, found, conversation)
        await run_db(lambda: people_and_turns.answered(lease))
        at = 1 if first == "TurnOpened" else 2
        await hear(conversation, first, at, turn=2)
        await hear(conversation, "RoundOpened", at + 1, turn=2, round=1)
        await hear(conversation, "TextGrew", at + 2, turn=2, **GROWN)
        await in_step(page, found, conversation)
    assert "Here you are." in page.text("turn-2")
    assert "again" not in page.text("turn-2")
    assert page.missed == []


@pytest.mark.usefixtures("_others")
async def test_a_turn_that_stands_among_those_that_have_ended_is_not_added_below_them() -> None:
    _, conversation = await ada_and_her_conversation()
    known = await run_db(paging.read_bookmark, conversation, 1)
    query = f"after=1&mark={known.mark}"
    async with connected(conversation, query=query) as found:
        assert 'id="turn-1"' not in await frame_of(found)
        await hear(conversation, "TurnOpened", 1, turn=1)
        assert 'id="turn-1"' not in await frame_of(found)
        await hear(conversation, "RoundChanged", 2, turn=1, round=1)
        page = Page()
        await in_step(page, found, conversation)
        assert page.missed == []


@pytest.mark.usefixtures("_others")
async def test_what_a_frame_does_not_have_is_not_taken_for_shown() -> None:
    """The new title was told and not heard: the watch must still see that it is missing."""
    _, conversation = await ada_and_her_conversation()
    async with connected(conversation) as found:
        await frame_of(found)
        topic = hub.find(conversation.pk)
        assert topic is not None
        assert topic.shown is not None
        present, topic.place = topic.shown, (1, 1, 0)
        topic.shown = replace(present, title="Old")
        await hear(conversation, "TurnClosed", 1, turn=1)
        assert topic.shown == replace(present, title="Old")
        topic.shown = replace(present, waiting=3)
        await hear(conversation, "TurnClosed", 2, turn=1)
        assert topic.shown == present


async def test_what_comes_behind_a_gap_asks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Message] = []
    monkeypatch.setattr(publish.relay, "send", lambda group, message: said.append(message))
    _, conversation = await ada_and_her_conversation()
    async with connected(conversation) as found:
        await frame_of(found)
        said.clear()
        for at in range(5, 25):
            await hear(conversation, "TextGrew", at, turn=2, **GROWN)
        assert [message["type"] for message in said] == ["ask"]
        monkeypatch.setattr(publish, "ASK_SECONDS", 0)
        await hear(conversation, "TextGrew", 30, turn=2, **GROWN)
        assert len(said) == 2


async def test_a_page_that_asks_in_mid_turn_is_given_all_that_was_told_until_then() -> None:
    """Nothing is being said, and yet a turn began, or changed, that the page does not have."""
    _, conversation = await ada_and_her_conversation()
    live = {"type": "live", "conversation": conversation.pk, "live": None, "said": {}}
    async with connected(conversation) as found:
        page = Page()
        page.take(await frame_of(found))
        await run_db(lambda: people_and_turns.next_turn(conversation))
        await publish.hear(live | {"place": [2, 1, 2]})
        await hear(conversation, "RoundOpened", 3, turn=2, round=1)
        await in_step(page, found, conversation)
    assert page.root.find("turn-2-r1-tail")
    assert page.missed == []
