"""Messages of other processes come late, in part or never: a page loses and doubles nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from channels.testing import WebsocketCommunicator

from conversations.db import run_db
from conversations.library.conversations import delete_everything
from conversations.library.erase import erase_due_conversations
from conversations.live import publish
from conversations.live.hub import Frame, Topic, hub
from conversations.live.relay import Message
from conversations.log.page_version import read_versions
from conversations.models import Conversation
from conversations.transcript import paging
from tests.support import people_and_turns, stored_turns
from tests.web.fold import Page
from tests.web.tabs import ada_and_her_conversation, connected, frame_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]

GROWN = {"round": 1, "thinking": "again", "closed": "<p>again</p>", "tail": "again"}


@pytest.fixture(autouse=True)
def _left() -> Iterator[None]:
    yield
    assert hub._topics == {}


async def hear(
    conversation: Conversation,
    name: str,
    step: tuple[int, int] | None = None,
    at: tuple[int, int] | None = None,
    **fields: Any,
) -> None:
    """Hear of an event of a process that runs the turn."""
    message = {"type": "events", "conversation": conversation.pk, "events": [[name, fields]]}
    await publish.handle_message(message | {"step": step and [*step], "at": at and [*at]})


async def version_of(conversation: Conversation) -> int:
    return (await run_db(read_versions, {conversation.pk}))[conversation.pk]


def topic_of(conversation: Conversation) -> Topic:
    topic = hub.find(conversation.pk)
    assert topic is not None
    return topic


async def in_step(page: Page, found: WebsocketCommunicator, conversation: Conversation) -> None:
    """Give the page all frames that it was sent so far."""
    topic = topic_of(conversation)
    while True:
        # A snapshot has all that was published until then, and so this is not sent.
        word = f"<i>{topic.position}</i>"
        topic.publish(Frame(word))
        page.take(frame := await frame_of(found))
        if word in frame:
            return


async def test_text_that_comes_later_than_the_end_it_belongs_to_is_not_shown_again() -> None:
    """Another process published it, and died before it published the end."""
    _, conversation = await ada_and_her_conversation()
    now = await version_of(conversation)
    async with connected(conversation) as found:
        page = Page()
        page.take(await frame_of(found))
        before = page.text("turn-1")
        await hear(conversation, "TurnChanged", (now - 6, now - 5), turn=1)
        await hear(conversation, "RoundOpened", (now - 5, now - 4), turn=1, round=1)
        await hear(conversation, "TextGrew", at=(now - 4, 1), turn=1, **GROWN)
        await in_step(page, found, conversation)
    assert page.text("turn-1") == before
    assert len(set(page.root.ids())) == len(page.root.ids())


@pytest.mark.parametrize("heard", [0, 1, 2, 3])
async def test_a_page_that_hears_of_the_beginning_of_a_turn_alone_is_given_the_rest(
    heard: int,
) -> None:
    """So much is published that it comes late, and what comes behind it is dropped."""
    _, conversation = await ada_and_her_conversation()
    async with connected(conversation) as found:
        page = Page()
        page.take(await frame_of(found))
        start = await version_of(conversation)
        lease = await run_db(lambda: people_and_turns.next_turn(conversation))
        assert lease.step == (start, start + 2)
        await run_db(lambda: people_and_turns.answered(lease))
        base = start + 3
        told = [
            ("TurnOpened", (start, start + 2), None, {"turn": 2}),
            ("RoundOpened", (start + 2, base), None, {"turn": 2, "round": 1}),
            ("TextGrew", None, (base, 1), {"turn": 2, **GROWN}),
        ]
        for name, step, at, fields in told[:heard]:
            await hear(conversation, name, step, at, **fields)
        topic_of(conversation).demand_version(await version_of(conversation))
        await in_step(page, found, conversation)
        for name, step, at, fields in told[heard:]:
            await hear(conversation, name, step, at, **fields)
        await in_step(page, found, conversation)
    assert "Here you are." in page.text("turn-2")
    assert "again" not in page.text("turn-2")
    assert page.missed == []
    assert len(set(page.root.ids())) == len(page.root.ids())


@pytest.mark.parametrize("is_heard", [True, False])
async def test_a_snapshot_of_an_open_round_has_a_place_for_its_answer(is_heard: bool) -> None:
    """Its opening is heard later than the snapshot, or never; nothing of its answer is stored."""
    _, conversation = await ada_and_her_conversation()
    async with connected(conversation) as found:
        page = Page()
        page.take(await frame_of(found))
        lease = await run_db(lambda: people_and_turns.next_turn(conversation))
        call = (await run_db(lambda: people_and_turns.opened(lease))).call
        base = await version_of(conversation)
        topic_of(conversation).demand_version(base)
        await in_step(page, found, conversation)
        if is_heard:
            await hear(conversation, "RoundOpened", (base - 1, base), turn=2, round=1)
        await hear(conversation, "TextGrew", at=(base, 1), turn=2, **GROWN)
        await run_db(stored_turns.close, lease, call, people_and_turns.complete())
        now = await version_of(conversation)
        await hear(conversation, "RoundChanged", (base, now), turn=2, round=1)
        await in_step(page, found, conversation)
    assert page.missed == []
    assert "Here you are." in page.text("turn-2-r1")
    assert len(set(page.root.ids())) == len(page.root.ids())


async def test_a_page_that_missed_a_change_is_given_it_with_the_next(monkeypatch: Any) -> None:
    """A queued message, a title, a whole turn: its frame leads from a version the page lacks."""
    _, conversation = await ada_and_her_conversation()
    async with connected(conversation) as found:
        page = Page()
        page.take(await frame_of(found))
        lease = await run_db(lambda: people_and_turns.next_turn(conversation))
        await run_db(lambda: people_and_turns.answered(lease))
        now = await version_of(conversation)
        await hear(conversation, "MeterMoved", (now - 1, now))
        await in_step(page, found, conversation)
    assert "Here you are." in page.text("turn-2")


async def test_a_turn_that_stands_among_those_that_have_ended_is_not_added_below_them() -> None:
    _, conversation = await ada_and_her_conversation()
    known = await run_db(paging.read_bookmark, conversation, 1)
    query = f"after=1&mark={known.mark}"
    async with connected(conversation, query=query) as found:
        assert 'id="turn-1"' not in await frame_of(found)
        await hear(conversation, "TurnOpened", (0, 2), turn=1)
        await hear(conversation, "RoundChanged", (3, 4), turn=1, round=1)
        page = Page()
        await in_step(page, found, conversation)
        assert page.missed == []
        assert page.find("turn-1") is None


async def test_what_comes_behind_a_gap_asks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Message] = []
    monkeypatch.setattr(publish.relay, "send", lambda group, message: said.append(message))
    _, conversation = await ada_and_her_conversation()
    base = await version_of(conversation) + 3
    async with connected(conversation) as found:
        await frame_of(found)
        said.clear()
        for at in range(5, 25):
            await hear(conversation, "TextGrew", at=(base, at), turn=2, **GROWN)
        assert [message["type"] for message in said] == ["ask"]
        monkeypatch.setattr(publish, "ASK_SECONDS", 0)
        await hear(conversation, "TextGrew", at=(base, 30), turn=2, **GROWN)
        assert len(said) == 2


async def test_a_page_that_asks_in_mid_turn_is_given_all_that_was_published_until_then() -> None:
    """Nothing is being said, and yet a turn began, or changed, that the page does not have."""
    _, conversation = await ada_and_her_conversation()
    answer = {"type": "answer", "conversation": conversation.pk, "live": None, "progress": {}}
    async with connected(conversation) as found:
        page = Page()
        page.take(await frame_of(found))
        lease = await run_db(lambda: people_and_turns.next_turn(conversation))
        assert lease.step is not None
        after = lease.step[1]
        await publish.handle_message(answer | {"at": [0, 0], "version": after})
        await hear(conversation, "RoundOpened", (after, after + 1), turn=2, round=1)
        await in_step(page, found, conversation)
    assert page.find("turn-2-r1-tail")
    assert page.missed == []


async def test_the_answer_so_far_is_shown_to_who_missed_some_of_it() -> None:
    _, conversation = await ada_and_her_conversation()
    lease = await run_db(lambda: people_and_turns.next_turn(conversation))
    assert lease.step is not None
    base = lease.step[1] + 1
    live = [2, 1, "", "<p>All of</p>", "it"]
    answer = {"type": "answer", "conversation": conversation.pk, "live": live, "progress": {}}
    async with connected(conversation) as found:
        page = Page()
        page.take(await frame_of(found))
        await hear(conversation, "TextGrew", at=(base, 7), turn=2, **GROWN)
        await publish.handle_message(answer | {"at": [base, 7], "version": lease.step[1]})
        grown = {"round": 1, "thinking": "", "closed": "<p>it and more</p>", "tail": ""}
        await hear(conversation, "TextGrew", at=(base, 8), turn=2, **grown)
        await in_step(page, found, conversation)
    assert page.text("turn-2-r1-done") == "All ofit and more"
    assert page.text("turn-2-r1-tail") == ""


async def test_what_a_process_of_another_version_says_is_read_by_the_pages() -> None:
    _, conversation = await ada_and_her_conversation()
    for message in (
        {"type": "event", "name": "TurnClosed"},
        {"type": "events", "events": [["X", {}]]},
    ):
        async with connected(conversation) as found:
            await frame_of(found)
            await publish.handle_message(message | {"conversation": conversation.pk})
            assert 'id="turn-1"' in await frame_of(found)


async def test_a_page_hears_that_its_chat_was_deleted_when_nothing_is_left_to_read() -> None:
    user, conversation = await ada_and_her_conversation()
    async with connected(conversation) as found:
        await frame_of(found)
        await run_db(delete_everything, owner_id=user.pk)
        await run_db(erase_due_conversations, owner_id=user.pk)
        assert await run_db(Conversation.objects.count) == 0
        await hear(conversation, "ChatDeleted")
        assert 'id="deleted"' in await frame_of(found)


async def test_a_worker_that_lost_its_turn_ends_nothing_on_a_page() -> None:
    """It comes back from a pause and publishes the end of what another one goes on with."""
    _, conversation = await ada_and_her_conversation()
    lease = await run_db(lambda: people_and_turns.next_turn(conversation))
    assert lease.step is not None
    base = lease.step[1] + 1
    async with connected(conversation) as found:
        page = Page()
        page.take(await frame_of(found))
        await hear(conversation, "RoundOpened", (base - 1, base), turn=2, round=1)
        await hear(conversation, "TextGrew", at=(base, 1), turn=2, **GROWN)
        await hear(conversation, "TurnClosed", (base - 2, base - 2), turn=2)
        await hear(conversation, "TextGrew", at=(base, 2), turn=2, **GROWN)
        await in_step(page, found, conversation)
    assert page.text("turn-2-r1-done") == "againagain"
    await run_db(people_and_turns.answered, lease)
