"""The watch of a process: who may no longer read is cut off, what nobody published is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from django.contrib.auth import HASH_SESSION_KEY
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agentweb.bench.tabs import BEAT
from conversations.accounts.sessions import find_valid_sessions
from conversations.agent.events import TitleChanged
from conversations.db import run_db
from conversations.library.conversations import delete_conversation, rename_conversation
from conversations.live import watch as watching
from conversations.live.consumer import ChatConsumer
from conversations.live.hub import Frame, hub
from conversations.live.publish import announce
from conversations.log.page_version import read_versions
from conversations.models import Conversation, Session, User
from conversations.transcript.paging import read_bookmark
from tests.support import people_and_turns
from tests.web.fold import Page
from tests.web.tabs import (
    ada_and_her_conversation,
    closed_with,
    connected,
    frame_of,
    session_of,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


@pytest.fixture(autouse=True)
def _left() -> Iterator[None]:
    yield
    assert hub._topics == {}


def log_out(user: User) -> None:
    Session.objects.all().delete()


def deactivate(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def change_password(user: User) -> None:
    user.set_password("another")
    user.save()


def delete_the_conversation(user: User) -> None:
    delete_conversation(conversation=user.conversations.get())


def become_another(user: User) -> None:
    eve = people_and_turns.person("eve")
    for session in Session.objects.all():
        values = session.get_decoded() | {
            "_auth_user_id": str(eve.pk), HASH_SESSION_KEY: eve.get_session_auth_hash()
        }  # fmt: skip
        session.session_data = Session.objects.encode(values)
        session.save()


async def checks(times: int) -> None:
    """Wait until the watch has checked so often."""
    wanted = watching.watch._checks + times
    async with asyncio.timeout(60):
        while watching.watch._checks < wanted:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (log_out, 4401),
        (deactivate, 4401),
        (change_password, 4401),
        (become_another, 4401),
        (delete_the_conversation, 4404),
    ],
)
@pytest.mark.parametrize("is_busy", [False, True])
async def test_who_may_no_longer_read_is_closed_within_a_period(
    change: Any, code: int, is_busy: bool, monkeypatch: Any
) -> None:
    monkeypatch.setattr(watching, "SECONDS", 3_600)
    user, conversation = await ada_and_her_conversation()
    async with connected(conversation) as found:
        await frame_of(found)
        topic = hub._topics[conversation.pk]

        async def chatter() -> None:
            while True:
                topic.publish(Frame("<i>more</i>"))
                await asyncio.sleep(0.01)

        noise = asyncio.create_task(chatter()) if is_busy else None
        try:
            for _ in range(2):
                await watching.watch.check()
            await run_db(change, user)
            # What was known of before the change does not count any more.
            await watching.watch.check()
            assert await closed_with(found) == code
        finally:
            if noise is not None:
                noise.cancel()


async def test_who_may_still_read_stays(monkeypatch: Any) -> None:
    monkeypatch.setattr(watching, "SECONDS", 0.05)
    _, conversation = await ada_and_her_conversation()
    async with connected(conversation) as found:
        await frame_of(found)
        # All it hears is that the server lives, and which version it shows.
        said = {await found.receive_from(timeout=60) for _ in range(4)}
        assert said == {f"<!-- alive {conversation.version} -->"}


async def test_what_nobody_told_of_is_shown_by_the_next_check(monkeypatch: Any) -> None:
    """A hint between processes may be lost, and somebody may change a conversation from outside."""
    monkeypatch.setattr(watching, "SECONDS", 0.05)
    _, conversation = await ada_and_her_conversation()
    async with connected(conversation) as found:
        await frame_of(found)
        await checks(2)
        await run_db(lambda: people_and_turns.next_turn(conversation))
        page = Page()
        while not page.find("turn-2"):
            page.take(await frame_of(found))


async def test_a_change_that_is_still_being_published_is_waited_for(monkeypatch: Any) -> None:
    """Only what the database had at the check before is missing."""
    monkeypatch.setattr(watching, "SECONDS", 3_600)
    _, conversation = await ada_and_her_conversation()
    async with connected(conversation) as found:
        await frame_of(found)
        topic = hub._topics[conversation.pk]
        await run_db(lambda: people_and_turns.next_turn(conversation))
        position = topic.position
        await watching.watch.check()
        assert topic.position == position
        await watching.watch.check()
        assert 'id="turn-2"' in await frame_of(found)


async def test_a_check_asks_the_database_as_often_for_many_pages_as_for_one() -> None:
    user, first = await ada_and_her_conversation()
    others = [
        await run_db(lambda: people_and_turns.conversation_of(people_and_turns.started_turn(user)))
        for _ in range(3)
    ]
    session = await run_db(session_of, user)
    counts = []
    async with AsyncExitStack() as stack:
        for conversation in (first, *others):
            found = await stack.enter_async_context(connected(conversation, session))
            await frame_of(found)
            if conversation in (first, others[-1]):
                counts.append(await run_db(_statements_of_a_check))
    assert counts[0] == counts[1] <= 3


def _statements_of_a_check() -> int:
    with CaptureQueriesContext(connection) as captured:
        keys = {each.session_key: each.conversation.owner_id for each in watching.watch._sockets}
        find_valid_sessions(keys, {})
        read_versions({each.conversation.pk for each in watching.watch._sockets})
    return len(captured)


# Pages that come back to a server which has restarted.


async def left_at(conversation: Conversation) -> int:
    """Open a page, and return the version that it is told when its server leaves."""
    page = Page()
    async with connected(conversation) as found:
        page.take(await frame_of(found))
        await watching.watch.announce_stop()
        sign = BEAT.match(await found.receive_from(timeout=60))
        page.take(await frame_of(found))
    assert page.find("restarting") is not None
    assert sign is not None
    return int(sign[1])


async def test_a_page_that_comes_back_unchanged_is_sent_budgets_and_no_snapshot() -> None:
    _, conversation = await ada_and_her_conversation()
    left = await left_at(conversation)
    mark = (await run_db(read_bookmark, conversation, 1)).mark
    query = f"after=1&mark={mark}&left={left}"
    async with connected(conversation, query=query) as found:
        frame = await frame_of(found)
        assert 'id="budget"' in frame
        assert 'id="live"' not in frame
        await run_db(rename_conversation, conversation=conversation, title="Another name")
        await announce(conversation.pk, TitleChanged())
        assert "Another name" in await frame_of(found)
    # It is older now; or of the same number in another history, as after a restore.
    for other in (query, f"after=1&mark=another&left={left + 1}"):
        async with connected(conversation, query=other) as found:
            assert 'id="live"' in await frame_of(found)


async def test_a_page_is_not_told_a_version_whose_frame_still_waits_to_be_sent(
    monkeypatch: Any,
) -> None:
    """Its connection may end in between, and it would come back as if it showed that."""
    _, conversation = await ada_and_her_conversation()
    waits, goes_on, send = asyncio.Event(), asyncio.Event(), ChatConsumer.send

    async def send_later(self: ChatConsumer, text_data: str) -> None:
        if "Another name" in text_data:
            waits.set()
            await goes_on.wait()
        await send(self, text_data=text_data)

    monkeypatch.setattr(ChatConsumer, "send", send_later)
    async with connected(conversation) as found, asyncio.timeout(60):
        await frame_of(found)
        await run_db(rename_conversation, conversation=conversation, title="Another name")
        await announce(conversation.pk, TitleChanged())
        await waits.wait()
        await watching.watch._send(watching.write_sign)
        assert await found.receive_from(timeout=60) == f"<!-- alive {conversation.version} -->"
        goes_on.set()
        assert "Another name" in await frame_of(found)
        await watching.watch._send(watching.write_sign)
        sign = await found.receive_from(timeout=60)
        assert sign == f"<!-- alive {conversation.version + 1} -->"


async def test_a_chat_in_which_nothing_was_said_yet_comes_back_without_a_snapshot() -> None:
    person = await run_db(people_and_turns.person)
    conversation = await run_db(Conversation.objects.create, owner=person, model="claude-x")
    left = await left_at(conversation)
    assert left == 0
    async with connected(conversation, query=f"after=0&mark=&left={left}") as found:
        assert 'id="live"' not in await frame_of(found)


async def test_a_page_that_comes_back_to_a_running_answer_is_sent_a_snapshot() -> None:
    lease = await run_db(lambda: people_and_turns.started_turn(people_and_turns.person()))
    conversation = await run_db(Conversation.objects.get, pk=lease.conversation_id)
    left = await left_at(conversation)
    async with connected(conversation, query=f"left={left}") as found:
        assert 'id="live"' in await frame_of(found)
