"""Versions and the queue on the pages: made, chosen and published to every tab."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from channels.testing import WebsocketCommunicator
from django.test import Client
from django.utils import timezone

from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer
from conversations.agent.ports import Finish
from conversations.db import run_db
from conversations.library.conversations import delete_conversation
from conversations.library.erase import erase_conversation
from conversations.live.hub import hub
from conversations.models import LIVE, Conversation, Turn, User
from conversations.transcript import transcript
from conversations.turns import forks, takeovers, turns
from tests.live.test_consumer import connected
from tests.support import people_and_turns, stored_turns
from tests.support.running_turns import run, supervising, until
from tests.support.version_trees import again, edited, say, talk, turn
from tests.web.fold import Page
from tests.web.pages import HTMX
from tests.web.tags import acting

pytestmark = pytest.mark.django_db


def client_of(conversation: Conversation) -> Client:
    found = Client()
    found.force_login(User.objects.get(pk=conversation.owner_id))
    return found


def at(conversation: Conversation, tail: str = "") -> str:
    return f"/c/{conversation.public_id}/{tail}"


def html_of(conversation: Conversation, tail: str = "") -> str:
    page = client_of(conversation).get(at(conversation, tail))
    assert page.status_code == 200
    html: str = page.content.decode()
    assert not acting(html)
    return html


def post(conversation: Conversation, tail: str, *, htmx: bool = True, **data: Any) -> Any:
    return client_of(conversation).post(at(conversation, tail), data, headers=HTMX if htmx else {})


def sections(html: str) -> list[str]:
    return re.findall(r'<section id="turn-(\d+)"', html)


# Pages.


def test_a_turn_with_versions_says_which_it_is_and_leads_to_the_others() -> None:
    conversation = talk("one", "two")
    assert 'class="turn-versions"' not in html_of(conversation)
    again(conversation, 2)
    again(conversation, 2)
    html = html_of(conversation)
    assert "Version 3 of 3" in html
    assert f'action="{at(conversation, "show/3/")}"' in html
    assert 'id="v1-next" class="quiet square" data-version="next" disabled' in html
    assert html.count("data-version=") == 2


def test_choosing_a_version_comes_back_to_its_place() -> None:
    conversation = talk("one", "two")
    again(conversation, 2)
    seq = turn(conversation, 2).messages.get(kind="prompt").seq
    response = post(conversation, "show/2/", htmx=False)
    assert response["Location"] == at(conversation, f"?m={seq}#m-{seq}")
    assert sections(html_of(conversation)) == ["1", "2"]
    response = post(conversation, "show/3/")
    assert response.status_code == 200
    assert "HX-Redirect" not in response
    assert sections(html_of(conversation)) == ["1", "3"]


def test_an_edit_without_script_comes_back_to_its_running_turn() -> None:
    conversation = talk("one", "two")
    data = {"text": "zwei", "client_id": str(uuid4())}
    address = post(conversation, "edit/2/", htmx=False, **data)["Location"]
    tail = address.removeprefix(at(conversation)).partition("#")[0]
    assert tail.startswith("?m=")
    assert sections(html_of(conversation, tail)) == ["1", "3"]


def test_a_version_far_back_is_gone_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conversations.log.tree.NEAR_TURNS", 2)
    conversation = talk("one", "two", "three")
    edited(conversation, 1, "uno")
    seq = turn(conversation, 1).messages.get(kind="prompt").seq
    response = post(conversation, "show/1/")
    assert response["HX-Redirect"] == at(conversation, f"?m={seq}#m-{seq}")


def test_a_link_to_another_version_shows_it_and_offers_to_go_there() -> None:
    conversation = talk("one", "two", "three")
    edited(conversation, 2, "zwei")
    seq = turn(conversation, 3).messages.get(kind="prompt").seq
    html = html_of(conversation, f"?m={seq}")
    assert sections(html) == ["1", "2", "3"]
    assert "ws-connect" not in html
    assert 'id="composer"' not in html
    assert f'action="{at(conversation, "show/3/")}"' in html
    assert "Show these versions" in html
    post(conversation, "show/3/", htmx=False)
    html = html_of(conversation, f"?m={seq}")
    assert "Show these versions" not in html
    assert "ws-connect" in html


def test_pages_before_and_after_have_both_ways_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript, "PAGE", 2)
    conversation = talk(*"abcdef")
    html = html_of(conversation, "?before=5")
    assert sections(html) == ["3", "4"]
    for way in ("?before=3", "?after=4&amp;until=6"):
        assert f'href="{at(conversation, way)}"' in html
    assert 'data-after="6"' in html
    html = html_of(conversation, "?after=2")
    assert sections(html) == ["3", "4"]


def test_a_prompt_is_edited_in_place_or_on_a_page() -> None:
    conversation = talk("one <b>1</b>", "two")
    path = at(conversation, "edit/1/")
    assert f'hx-get="{path}"' in html_of(conversation)
    client = client_of(conversation)
    form = client.get(path, headers=HTMX).content.decode()
    assert "one &lt;b&gt;1&lt;/b&gt;</textarea>" in form
    assert "<html" not in form
    page = client.get(path).content.decode()
    assert "<html" in page
    assert "csrfmiddlewaretoken" in page
    assert not acting(page)
    name = str(uuid4())
    for _ in range(2):
        response = post(conversation, "edit/1/", htmx=False, text="uno", client_id=name)
        assert response.status_code == 302
    assert sections(html_of(conversation)) == ["3"]
    assert conversation.turns.count() == 3
    refusal = post(conversation, "edit/1/", text="noch einmal")
    assert refusal.status_code == 409
    assert b"An answer is on its way" in refusal.content


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_edit_to_nothing_is_refused_in_words(text: str) -> None:
    conversation = talk("one")
    response = post(conversation, "edit/1/", text=text)
    assert response.status_code == 409
    assert b"Write a message first" in response.content
    without = post(conversation, "edit/1/", htmx=False, text=text)
    assert b"Write a message first" in without.content
    assert b"<html" in without.content
    for data in ({"keep": "9"}, {"keep": "x"}, {"client_id": "x"}):
        assert post(conversation, "edit/1/", text="x", **data).status_code == 400
    assert conversation.turns.count() == 1


def test_a_cut_answer_is_continued_and_shown_as_that() -> None:
    lease = people_and_turns.started_turn(people_and_turns.person(), "Tell me all")
    stored_turns.close(lease, people_and_turns.opened(lease).call, people_and_turns.complete())
    turns.finish_turn(lease=lease, finish=Finish("done", "max_tokens"))
    conversation = people_and_turns.conversation_of(lease)
    assert f'action="{at(conversation, "continue/1/")}"' in html_of(conversation)
    for _ in range(2):
        assert post(conversation, "continue/1/").status_code == 200
    say(people_and_turns.claimed(turn(conversation, 2)))
    html = html_of(conversation)
    assert html.count('class="continued"') == 1
    assert "cut off" not in html
    assert at(conversation, "edit/2/") not in html
    assert client_of(conversation).get(at(conversation, "edit/2/")).status_code == 404
    assert post(conversation, "continue/2/").status_code == 409


def test_a_chat_that_is_erased_while_it_is_copied_is_not_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = talk("one", "two")
    read = forks._read_entries

    def read_and_erase(origin: Any) -> Any:
        found = read(origin)
        delete_conversation(conversation=first)
        later = timezone.now() + timedelta(days=400)
        assert erase_conversation(conversation_id=first.pk, now=later) is not None
        return found

    monkeypatch.setattr(forks, "_read_entries", read_and_erase)
    assert post(first, "fork/1/").status_code == 404
    assert not Conversation.objects.exists()


def test_waiting_messages_are_shown_and_taken_back() -> None:
    lease = people_and_turns.started_turn(people_and_turns.person())
    conversation = people_and_turns.conversation_of(lease)
    name = str(uuid4())
    post(conversation, "send/", text="Later <b>please</b>", client_id=name)
    html = html_of(conversation)
    assert "Later &lt;b&gt;please&lt;/b&gt;" in html
    assert "Sent when the answer is done" in html
    assert "Send now" not in html
    turns.finish_turn(lease=lease, finish=Finish("cancelled", "stopped"))
    assert "Send now" in html_of(conversation)
    assert post(conversation, f"queue/{name}/withdraw/").status_code == 200
    refusal = post(conversation, f"queue/{name}/withdraw/")
    assert refusal.status_code == 409
    assert b"not waiting any more" in refusal.content
    assert "Later" not in html_of(conversation).partition('id="queue"')[2].partition("<form")[0]


def test_a_waiting_message_is_sent_now() -> None:
    lease = people_and_turns.started_turn(people_and_turns.person())
    conversation = people_and_turns.conversation_of(lease)
    post(conversation, "send/", text="Later")
    assert post(conversation, "queue/send/").status_code == 409
    turns.finish_turn(lease=lease, finish=Finish("failed", "budget", "budget", "No money."))
    for _ in range(2):
        post(conversation, "queue/send/")
    assert list(conversation.turns.values_list("state", flat=True)) == ["failed", "queued"]


# Tabs.


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorServer]:
    with server.start(pace=0) as running:
        yield running


@pytest.fixture
def served(emulator: EmulatorServer, settings: Any) -> Iterator[None]:
    settings.ANTHROPIC_BASE_URL = emulator.url
    yield
    assert hub._topics == {}


async def catch_up(found: WebsocketCommunicator, page: Page, fresh: Page) -> None:
    """Apply frames until the page equals a new one, and those that still arrive."""
    while page.turns != fresh.turns:
        page.take(await found.receive_from(timeout=60))
    while not await found.receive_nothing(0.05):
        page.take(await found.receive_from(timeout=60))


async def opened(conversation: Conversation, tail: str = "") -> Page:
    return Page(await run_db(html_of, conversation, tail))


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_every_tab_ends_with_what_is_stored_whoever_changes_the_path(served: None) -> None:
    async with supervising() as supervisor:
        conversation = (await run(supervisor, "Hello there")).conversation
        await run(supervisor, "Hello again", conversation)
        old, new = await opened(conversation), await opened(conversation)
        await run(supervisor, "List my files", conversation)
        late = await opened(conversation)
        pages = [old, new, late]
        assert [page.bookmark.partition("&")[0][6:] for page in pages] == ["2", "2", "3"]

        async def done(tail: str, **data: Any) -> None:
            response = await run_db(post, conversation, tail, **data)
            assert response.status_code == 200
            for pk in await run_db(takeovers.list_claimable_turns):
                supervisor.wake(pk)
            await until(lambda: not Turn.objects.filter(state__in=LIVE).exists())

        acts: list[tuple[str, dict[str, str]]] = [
            ("retry/3/", {}),  # another last answer
            ("show/3/", {}),  # and back
            ("edit/1/", {"text": "Hello, who are you?"}),  # everything is another way
            ("send/", {"text": "Go on"}),
            ("show/1/", {}),
            ("retry/2/", {}),
            ("show/5/", {}),
        ]
        async with (
            connected(conversation, query=old.bookmark) as one,
            connected(conversation, query=new.bookmark) as two,
            connected(conversation, query=late.bookmark) as three,
        ):
            tabs = list(zip((one, two, three), pages, strict=True))
            for tail, data in acts:
                await done(tail, **data)
                fresh = await opened(conversation)
                await asyncio.gather(*(catch_up(found, page, fresh) for found, page in tabs))
                for page in pages:
                    assert page.turns == fresh.turns, tail
                    assert page.missed == []
                    assert len(set(page.root.ids())) == len(page.root.ids())
        # A tab that lost its connection long ago sends where it ends, and gets the current state.
        late.root = new.root
        await run_db(post, conversation, "show/1/")
        async with connected(conversation, query=late.bookmark) as again_:
            await catch_up(again_, late, await opened(conversation))


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_second_tab_sends_under_an_answer_and_both_show_it_until_it_is_sent(
    served: None,
) -> None:
    async with supervising() as supervisor:
        conversation = (await run(supervisor, "Hello there")).conversation
        pages = [await opened(conversation), await opened(conversation)]
        running = await run_db(
            turns.send_prompt,
            conversation=conversation,
            text="Answer in 120 words emulator:pace=0.01",
            client_id=uuid4(),
        )
        async with (
            connected(conversation, query=pages[0].bookmark) as one,
            connected(conversation, query=pages[1].bookmark) as two,
        ):
            tabs = list(zip((one, two), pages, strict=True))
            supervisor.wake(running.pk)
            await until(Turn.objects.filter(pk=running.pk, state="running").exists)
            response = await run_db(post, conversation, "send/", text="And then this")
            assert response.status_code == 200
            for found, page in tabs:
                while "And then this" not in page.text("queue"):
                    page.take(await found.receive_from(timeout=60))
            await until(lambda: Turn.objects.filter(number=3, state="done").exists())
            fresh = await opened(conversation)
            await asyncio.gather(*(catch_up(found, page, fresh) for found, page in tabs))
    for page in pages:
        assert page.turns == fresh.turns
        assert page.text("queue") == fresh.text("queue") == ""
        assert "And then this" in page.text("turn-3")
