"""The socket of a chat: only its owner from our own page; a snapshot, then every frame, once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
from channels.testing import WebsocketCommunicator
from django.db import OperationalError

from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer
from conversations.agent.events import TitleChanged
from conversations.db import run_db
from conversations.library.conversations import rename_conversation
from conversations.live import consumer, draft_batches, render
from conversations.live import watch as watching
from conversations.live.consumer import ChatConsumer
from conversations.live.hub import KEPT, Frame, hub
from conversations.live.publish import announce
from conversations.live.socket_access import socket_token
from conversations.log.page_version import read_versions
from conversations.models import Conversation, Draft, Turn
from conversations.runtime import dispatch
from conversations.transcript import paging
from conversations.transcript.shapes import Bookmark
from conversations.turns import turns
from conversations.turns.drafts import save_draft
from tests.support import people_and_turns
from tests.support.running_turns import answer_text, ended, queue, supervising, until
from tests.web.fold import Page
from tests.web.tabs import (
    ORIGIN,
    ada_and_her_conversation,
    closed_with,
    connected,
    is_accepted,
    session_of,
    socket,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
NOTHING = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorServer]:
    with server.start(pace=0) as running:
        yield running


@pytest.fixture(autouse=True)
def _served(emulator: EmulatorServer, settings: Any) -> Iterator[None]:
    settings.ANTHROPIC_BASE_URL = emulator.url
    yield
    assert hub._topics == {}


# Who may connect.


async def test_the_owner_on_our_page_is_let_in_and_nobody_else() -> None:
    user, conversation = await ada_and_her_conversation()
    eve = await run_db(lambda: people_and_turns.person("eve"))
    admin = await run_db(lambda: people_and_turns.person("root", is_staff=True, is_superuser=True))
    mine, hers, roots = [await run_db(session_of, each) for each in (user, eve, admin)]
    path = f"/ws/c/{conversation.public_id}/"
    assert await is_accepted(socket(path, mine))
    for session in ("", "made up", hers, roots):
        assert not await is_accepted(socket(path, session))
    assert not await is_accepted(socket(f"/ws/c/{NOTHING}/", mine))


ELSEWHERE = [
    None, "", "null", "http://127.0.0.1:9999", "https://127.0.0.1:8000", "http://127.0.0.1",
    "http://localhost:8000", "http://evil.example", f"{ORIGIN}.evil.example", f"{ORIGIN}/",
    "http://127.0.0.1:8000@evil.example", "ws://127.0.0.1:8000",
]  # fmt: skip
HOSTS = {
    "[::1]:8000": True, "localhost": True, "evil.example": False, "": False, "[": False,
    "[::1": False, "127.0.0.1:port": False, "\x00": False,
}  # fmt: skip


async def test_another_origin_is_refused() -> None:
    user, conversation = await ada_and_her_conversation()
    session = await run_db(session_of, user)
    for origin in ELSEWHERE:
        found = socket(f"/ws/c/{conversation.public_id}/", session, origin=origin)
        assert not await is_accepted(found), origin


async def test_a_host_that_is_not_ours_is_refused_even_with_its_own_origin() -> None:
    user, conversation = await ada_and_her_conversation()
    session, path = await run_db(session_of, user), f"/ws/c/{conversation.public_id}/"
    for host, is_ours in HOSTS.items():
        found = socket(path, session, host=host, origin=f"http://{host}")
        assert await is_accepted(found) == is_ours, host


async def test_a_page_of_another_session_is_refused() -> None:
    user, conversation = await ada_and_her_conversation()
    mine, older = [await run_db(session_of, user) for _ in range(2)]
    path = f"/ws/c/{conversation.public_id}/"
    assert await is_accepted(socket(path, mine))
    tokens = ["", "é", socket_token(older), socket_token(mine)[:-1], f"{socket_token(mine)}x"]
    for token in tokens:
        assert not await is_accepted(socket(path, mine, token=token)), token


async def test_a_new_secret_key_keeps_who_is_logged_in(settings: Any) -> None:
    settings.SECRET_KEY = "old " * 20
    user, conversation = await ada_and_her_conversation()
    key = await run_db(session_of, user)
    path, token = f"/ws/c/{conversation.public_id}/", socket_token(key)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "new " * 20, ["old " * 20]
    assert await is_accepted(socket(path, key, token=token))
    assert await is_accepted(socket(path, key))
    # Without the former key the session is of nobody here, but a handshake ends none.
    settings.SECRET_KEY_FALLBACKS = []
    assert not await is_accepted(socket(path, key))
    settings.SECRET_KEY_FALLBACKS = ["old " * 20]
    assert await is_accepted(socket(path, key))


async def test_an_unknown_path_is_closed() -> None:
    user, _ = await ada_and_her_conversation()
    session = await run_db(session_of, user)
    for path in ("/", "/ws/", "/ws/c/", "/ws/c/1/", "/ws/c/x/", "/admin/", "/é"):
        assert not await is_accepted(socket(path, session)), path


# What it tells.


async def test_the_first_frame_is_a_snapshot_of_what_the_page_does_not_have() -> None:
    _, conversation = await ada_and_her_conversation()
    async with connected(conversation) as found:
        first = await found.receive_from(timeout=60)
    assert 'id="turn-1"' in first
    mark = (await run_db(paging.read_bookmark, conversation, 1)).mark
    known = f"after=1&mark={mark}"
    for query in (known, "after=1", "after=1&mark=", f"after=1&mark={mark}0",
                  f"after=2&mark={mark}", f"after=9999999999999&mark={mark}", "after=-1",
                  "after=x", f"{known}&after=0", "=", "&&&", "after", "%ff=%ff",
                  "after=%D9%A1"):  # fmt: skip
        async with connected(conversation, query=query) as found:
            again = await found.receive_from(timeout=60)
        assert ('id="turn-1"' in again) == (query != known)


async def test_a_page_that_was_just_made_is_sent_what_comes_and_no_snapshot() -> None:
    _, conversation = await ada_and_her_conversation()
    version = (await run_db(read_versions, [conversation.pk]))[conversation.pk]
    async with connected(conversation, query=f"after=0&version={version}") as found:
        assert await found.receive_nothing(0.2)
        await run_db(rename_conversation, conversation=conversation, title="Another name")
        await announce(conversation.pk, TitleChanged())
        assert "Another name" in await found.receive_from(timeout=60)
    for query in (f"version={version}", f"version={version + 2}", "version=x", "version=",
                  f"version={version + 1}&version={version + 1}", "version=-1"):  # fmt: skip
        async with connected(conversation, query=query) as found:
            assert 'id="turn-1"' in await found.receive_from(timeout=60)


async def listen(found: WebsocketCommunicator, page: Page, turn: Turn) -> list[str]:
    """Fold frames until the turn is over; give the text of the answer after each."""
    seen: list[str] = []
    number = turn.number
    while True:
        page.take(await found.receive_from(timeout=60))
        seen.append(answer_of(page, number))
        section = page.find(f"turn-{number}")
        if section is not None and section.attributes.get("data-live") == "":
            return seen


@asynccontextmanager
async def watched_turn(text: str) -> AsyncIterator[tuple[Turn, Page, list[str]]]:
    """Have a page that is there from the start told a whole turn; give the texts it showed."""
    async with supervising() as supervisor:
        turn = await queue(text)
        async with connected(turn.conversation) as found:
            page = Page()
            page.take(await found.receive_from(timeout=60))
            supervisor.wake(turn.pk)
            yield turn, page, await listen(found, page, turn)


def answer_of(page: Page, number: int, round_: int = 1) -> str:
    parts = (page.text(f"turn-{number}-r{round_}-{part}") for part in ("done", "tail"))
    return " ".join(" ".join(parts).split())


def final(conversation: Conversation) -> Page:
    page = Page()
    page.take(render.render_snapshot(conversation.pk, Bookmark(), None)[0])
    return page


async def test_a_page_that_was_there_from_the_start_ends_as_a_new_one_begins() -> None:
    async with watched_turn("List my files") as (turn, page, _):
        pass
    fresh = await run_db(final, turn.conversation)
    assert page.text("turn-1") == fresh.text("turn-1")
    assert page.missed == []
    assert len(set(page.root.ids())) == len(page.root.ids())


@pytest.mark.parametrize("delay", [0.0, 0.15, 0.4])
async def test_a_page_that_comes_in_mid_answer_loses_and_doubles_nothing(
    delay: float, monkeypatch: Any
) -> None:
    async with supervising() as supervisor:
        turn = await queue("Answer in 250 words emulator:pace=0.008")
        supervisor.wake(turn.pk)
        await until(Draft.objects.exists if delay else Turn.objects.filter(state="running").exists)
        await asyncio.sleep(delay)
        async with connected(turn.conversation) as one, connected(turn.conversation) as two:
            pages = Page(), Page()
            seen = await asyncio.gather(listen(one, pages[0], turn), listen(two, pages[1], turn))
    row = await ended(turn)
    whole = " ".join((await run_db(answer_text, row)).split())
    fresh = await run_db(final, turn.conversation)
    assert answer_of(fresh, 1) == whole
    for page, texts in zip(pages, seen, strict=True):
        assert all(whole.startswith(text) for text in texts)
        assert len(set(texts)) > 3
        assert page.text("turn-1") == fresh.text("turn-1")
        assert page.missed == []


@pytest.mark.parametrize("prompt", ["Answer in 60 words emulator:pace=0.005", "List my files"])
async def test_a_page_that_was_told_a_turn_is_not_given_it_again(
    prompt: str, monkeypatch: Any
) -> None:
    """Each check of the watch would cost a whole page, of every conversation that went on."""
    monkeypatch.setattr(watching, "SECONDS", 600)
    snapshots: list[ChatConsumer] = []
    send = ChatConsumer._send_snapshot

    async def counted(self: ChatConsumer, *args: Any) -> None:
        snapshots.append(self)
        await send(self, *args)

    monkeypatch.setattr(ChatConsumer, "_send_snapshot", counted)
    async with watched_turn(prompt):
        for _ in range(3):
            await watching.watch.check()
    # The one it begins with.
    assert len(snapshots) == 1


async def test_first_words_that_could_not_be_kept_are_shown_with_the_next(monkeypatch: Any) -> None:
    tries = []

    def save(**fields: Any) -> None:
        tries.append(fields["text"])
        if len(tries) == 1:
            raise OperationalError("on purpose")
        save_draft(**fields)

    monkeypatch.setattr(draft_batches, "save_draft", save)
    async with watched_turn("Answer in 100 words emulator:pace=0.008") as (turn, _, seen):
        pass
    whole = " ".join((await run_db(answer_text, await ended(turn))).split())
    assert len(tries) > 1
    assert tries[1].startswith(tries[0])
    assert len(set(seen)) > 3
    assert all(whole.startswith(text) for text in seen)


async def test_a_page_that_comes_and_goes_all_the_time_does_not_disturb_the_answer() -> None:
    async with supervising() as supervisor:
        turn = await queue("Answer in 200 words emulator:pace=0.005")
        supervisor.wake(turn.pk)
        await until(Draft.objects.exists)
        whole: list[str] = []
        for _ in range(12):
            async with connected(turn.conversation) as found:
                page = Page()
                page.take(await found.receive_from(timeout=60))
                whole.append(answer_of(page, 1))
        row = await ended(turn)
    text = " ".join((await run_db(answer_text, row)).split())
    assert all(text.startswith(each) for each in whole)
    assert [len(each) for each in whole] == sorted(len(each) for each in whole)


async def test_a_page_that_fell_behind_is_given_a_snapshot() -> None:
    _, conversation = await ada_and_her_conversation()
    async with connected(conversation) as found:
        await found.receive_from(timeout=60)
        topic = hub._topics[conversation.pk]
        for at in range(KEPT + 50):
            topic.publish(Frame(f"<i>{at}</i>"))
        assert 'id="turn-1"' in await found.receive_from(timeout=60)
        assert await found.receive_nothing(0.05)


async def test_a_turn_stopped_before_anybody_ran_it_is_shown() -> None:
    async with supervising():
        turn = await queue("Hello")
        async with connected(turn.conversation) as found:
            page = Page()
            page.take(await found.receive_from(timeout=60))
            await run_db(turns.request_stop, turn=turn)
            await run_db(dispatch.stop_turn, turn)
            await listen(found, page, turn)
    assert "Stopped" in page.text("turn-1")


async def test_a_turn_that_the_sweep_interrupts_is_shown() -> None:
    lease = await run_db(lambda: people_and_turns.started_turn(people_and_turns.person("ada")))
    turn = await run_db(people_and_turns.turn_of, lease)
    conversation = await run_db(people_and_turns.conversation_of, lease)
    async with supervising(is_alone=False) as supervisor, connected(conversation) as found:
        page = Page()
        page.take(await found.receive_from(timeout=60))
        await supervisor.sweep(everything=True)
        await listen(found, page, turn)
    assert "Interrupted" in page.text("turn-1")


# What it is told.

GARBAGE = [
    "{", "[" * 100_000, "NaN", "1e999", "1" * 5_000, "null", "[]", '"x"', "{}", '{"type":5}',
    '{"text":{}}', '{"type":1,"type":2}', "\0", "\ud7ff\U0001f600", "<script>",
    json.dumps({"type": "send", "conversation": NOTHING, "text": "hi"}),
    json.dumps({"type": "approve", "tool": "toolu_1"}),
]  # fmt: skip


async def test_garbage_does_no_harm() -> None:
    _, conversation = await ada_and_her_conversation()
    async with connected(conversation) as found:
        before = await run_db(people_and_turns.everything)
        await found.receive_from(timeout=60)
        for text in GARBAGE:
            await found.send_to(text_data=text)
        for data in (b"\xff\xfe", b"\x00" * 1_000):
            await found.send_to(bytes_data=data)
        hub._topics[conversation.pk].publish(Frame("<i>still there</i>"))
        assert await found.receive_from(timeout=60) == "<i>still there</i>"
    assert await run_db(people_and_turns.everything) == before


async def test_one_that_talks_on_and_on_is_closed() -> None:
    _, conversation = await ada_and_her_conversation()
    async with connected(conversation) as found:
        await found.receive_from(timeout=60)
        for _ in range(consumer.MOST_RECEIVED + 1):
            await found.send_to(text_data="{}")
        assert await closed_with(found) == 4008


async def test_a_person_may_have_so_many_tabs_open(settings: Any) -> None:
    settings.AGENTWEB_MAX_SOCKETS_PER_USER = 2
    _, conversation = await ada_and_her_conversation()
    lease = await run_db(lambda: people_and_turns.started_turn(people_and_turns.person("eve")))
    others = await run_db(people_and_turns.conversation_of, lease)
    async with connected(conversation), connected(others):
        async with connected(conversation) as last, connected(conversation) as crowded:
            assert await closed_with(crowded) == consumer.CROWDED
            await last.receive_from(timeout=60)
        async with connected(conversation) as again:
            assert 'id="turn-1"' in await again.receive_from(timeout=60)


async def test_a_page_connects_while_redis_is_away(settings: Any) -> None:
    """A socket has no channel of its own there: the process listens for all of them."""
    host = {"address": "redis://127.0.0.1:1", "socket_connect_timeout": 60}
    backend = "conversations.live.layer.PipelinedLayer"
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": backend, "CONFIG": {"hosts": [host]}}}
    user, conversation = await ada_and_her_conversation()
    async with connected(conversation) as found:
        assert 'id="turn-1"' in await found.receive_from(timeout=60)
    assert not await is_accepted(socket("/ws/", await run_db(session_of, user)))


async def test_many_sockets_leave_nothing_behind() -> None:
    user, conversation = await ada_and_her_conversation()
    session = await run_db(session_of, user)
    for _ in range(10):
        async with connected(conversation, session), connected(conversation, session):
            pass
    assert not await is_accepted(socket(f"/ws/c/{uuid4()}/", session))
    assert hub._topics == {}
