"""Pages: rendered by the server, with a fixed number of queries, whatever is in the database."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from conversations.models import ApiModel, Conversation
from conversations.transcript import transcript
from conversations.turns import takeovers
from tests.support import approval_turns, people_and_turns, stored_turns, toy_tools
from tests.web.pages import HTMX, client_of
from tests.web.tags import elements

pytestmark = pytest.mark.django_db


def talk(size: int, name: str = "ada") -> Conversation:
    lease = people_and_turns.started_turn(people_and_turns.person(name), "Question 1")
    people_and_turns.answered(lease)
    for at in range(2, size + 1):
        lease = people_and_turns.next_turn(
            people_and_turns.conversation_of(lease), f"Question {at}"
        )
        people_and_turns.answered(lease)
    return people_and_turns.conversation_of(lease)


def queries(client: Client, path: str) -> int:
    client.get(path)
    with CaptureQueriesContext(connection) as found:
        assert client.get(path).status_code == 200
    return len(found)


def test_the_start_is_the_newest_talk_or_a_new_one() -> None:
    user = people_and_turns.person()
    assert client_of(user).get("/")["Location"] == "/c/new/"
    people_and_turns.queued(user, "first")
    newest = people_and_turns.queued(user, "second").conversation
    Conversation.objects.filter(pk=newest.pk).update(archived_at=None)
    assert client_of(user).get("/")["Location"] == f"/c/{newest.public_id}/"


def test_a_talk_is_shown_with_its_turns_tools_and_markers() -> None:
    played = stored_turns.played(title="Read <b>the</b> file")
    page = client_of(played.user).get(f"/c/{played.conversation.public_id}/")
    html = page.content.decode()
    assert page.status_code == 200
    assert "Read &lt;b&gt;the&lt;/b&gt; file" in html
    assert "read_file" in html
    assert "4711-ÄÖ" in html
    marker = played.conversation.transformations.get(kind="compaction")
    assert f"/c/{played.conversation.public_id}/inspect/events/{marker.seq}/" in html
    assert 'ws-connect="/ws/c/' in html
    assert 'data-after="1"' in html


def test_a_page_costs_the_same_queries_however_long_the_talk_is() -> None:
    counts = []
    for size, name in ((3, "ada"), (30, "bob")):
        conversation = talk(size, name)
        counts.append(queries(client_of(conversation.owner), f"/c/{conversation.public_id}/"))
    assert counts[0] == counts[1] <= 25


def test_a_page_costs_the_same_queries_however_many_talks_there_are(settings: Any) -> None:
    settings.AGENTWEB_MAX_LIVE_TURNS = 100
    conversation = talk(1)
    client, path = client_of(conversation.owner), f"/c/{conversation.public_id}/"
    few = queries(client, path)
    for at in range(30):
        people_and_turns.queued(conversation.owner, f"Talk {at}")
    assert queries(client, path) == few
    assert b"Talk 29" in client.get(path).content


def test_earlier_turns_come_by_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript, "PAGE", 5)
    conversation = talk(8)
    client, path = client_of(conversation.owner), f"/c/{conversation.public_id}/"
    html = client.get(path).content.decode()
    assert 'id="turn-8"' in html
    assert 'id="turn-3"' not in html
    assert "?before=4" in html
    earlier = client.get(f"{path}?before=4").content.decode()
    assert 'id="turn-3"' in earlier
    assert 'id="turn-1"' in earlier
    assert 'id="turn-4"' not in earlier
    assert "?before=" not in earlier


@pytest.mark.parametrize("query", ["?m=1", "?after=0", "?before=2"])
def test_a_page_of_earlier_turns_has_the_running_one_and_its_question(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, query: str
) -> None:
    toy_tools.install(monkeypatch, tmp_path / "ran")
    conversation = talk(1)
    approval_turns.ask(people_and_turns.next_turn(conversation), approval_turns.POST)
    path = f"/c/{conversation.public_id}/{query}"
    html = client_of(conversation.owner).get(path).content.decode()
    history, _, live = html.partition('<div id="live">')
    assert 'id="turn-1"' in history
    for part in ('id="turn-2"', 'class="question"', 'id="stop"'):
        assert part in live
        assert part not in history


def test_later_turns_are_loaded_up_to_those_that_came_by_the_socket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transcript, "PAGE", 4)
    conversation = talk(12)
    client, path = client_of(conversation.owner), f"/c/{conversation.public_id}/"
    html, found = client.get(f"{path}?m=1").content.decode(), list[str]()
    people_and_turns.answered(people_and_turns.next_turn(conversation))
    while link := re.search(r'hx-get="[^"]*([?]after=[^"]*)"', html):
        html = client.get(path + unescape(link[1]), headers=HTMX).content.decode()
        found += re.findall(r'id="turn-(\d+)"', html)
    assert found == [str(number) for number in range(3, 13)]


def test_a_page_that_is_not_there_is_no_error() -> None:
    conversation = talk(2)
    client = client_of(conversation.owner)
    odd = ("", "0", "-1", "x", "²", "٣", "9999999999", "999999999", "1.5", "%00", "1&before=2")
    for before in odd:
        path = f"/c/{conversation.public_id}/?before={before}"
        assert client.get(path).status_code == 200, before


def test_a_running_turn_is_in_the_live_part() -> None:
    lease = people_and_turns.started_turn()
    conversation = people_and_turns.conversation_of(lease)
    path = f"/c/{conversation.public_id}/"
    html = client_of(conversation.owner).get(path).content.decode()
    assert html.index('id="live"') < html.index('id="turn-1"')
    assert 'data-live="yes"' in html
    assert 'data-after="0"' in html


def test_the_sidebar_is_of_ones_own_talks() -> None:
    talk(1, "eve")
    mine = talk(1, "ada")
    Conversation.objects.exclude(pk=mine.pk).update(title="Secret of Eve")
    html = client_of(mine.owner).get("/c/new/").content
    assert b"Question 1" in html
    assert b"Secret of Eve" not in html


def test_the_prompt_of_a_link_is_filled_in_and_not_sent() -> None:
    user = people_and_turns.person()
    page = client_of(user).get("/c/new/", {"prompt": "</textarea><script>alert(1)</script>"})
    assert b"&lt;/textarea&gt;&lt;script&gt;" in page.content
    assert b"<script>alert" not in page.content
    assert not Conversation.objects.exists()


def test_models_that_are_switched_off_are_not_offered() -> None:
    ApiModel.objects.exclude(pk=stored_turns.MODEL).update(is_enabled=False)
    other = ApiModel.objects.exclude(pk=stored_turns.MODEL).first()
    html = client_of(people_and_turns.person()).get("/c/new/").content.decode()
    offered = [attrs for tag, attrs in elements(html) if attrs.get("name") == "model"]
    assert [attrs["value"] for attrs in offered if "checked" in attrs] == [stored_turns.MODEL]
    assert other is not None
    assert other.pk not in [attrs["value"] for attrs in offered]
    answer = client_of(people_and_turns.person("bob")).post(
        "/c/start/", {"text": "Hi", "model": other.pk}
    )
    assert answer.status_code == 400


def test_a_budget_that_is_used_up_is_said_on_the_page() -> None:
    user = people_and_turns.person()
    people_and_turns.limited(user, 0)
    assert b"Budget used up" in client_of(user).get("/c/new/").content


def test_an_interrupted_turn_offers_to_try_again() -> None:
    lease = people_and_turns.started_turn()
    takeovers.take_over_turn(turn_id=lease.turn_id, everything=True)
    conversation = people_and_turns.conversation_of(lease)
    html = client_of(conversation.owner).get(f"/c/{conversation.public_id}/").content
    assert b"Interrupted." in html
    assert f"/c/{conversation.public_id}/retry/1/".encode() in html


def test_a_whole_output_is_text_and_nothing_else() -> None:
    played = stored_turns.played(result="<script>alert(1)</script>" * 400)
    path = f"/c/{played.conversation.public_id}/tools/toolu_1/"
    page = client_of(played.user).get(path)
    assert page.status_code == 200
    assert b"<script>alert" not in page.content
    assert page.content.count(b"&lt;script&gt;") == 400


def test_every_page_says_that_the_emulator_answers(settings: Any) -> None:
    client = client_of(people_and_turns.person())
    assert b"Built-in emulator" in client.get("/c/new/").content
    assert b"Built-in emulator" in Client().get("/accounts/login/").content
    settings.ANTHROPIC_API_KEY = "sk-ant-canary"
    for page in (client.get("/c/new/"), Client().get("/accounts/login/")):
        assert b"Built-in emulator" not in page.content
        assert b"canary" not in page.content


@pytest.mark.parametrize(
    ("path", "back"),
    [
        ("/c/{id}/send/", "/c/{id}/"),
        ("/c/{id}/retry/1/", "/c/{id}/"),
        ("/c/{id}/queue/send/", "/c/{id}/"),
        ("/c/{id}/share/revoke/", "/c/{id}/share/"),
        ("/c/start/", "/"),
        ("/files/own/move/", "/files/"),
        ("/usage/limit/", "/usage/"),
        ("/accounts/logout/", "/"),
    ],
)
def test_who_opens_the_address_of_a_form_is_led_to_its_page(path: str, back: str) -> None:
    played = stored_turns.played()
    path, back = (one.format(id=played.conversation.public_id) for one in (path, back))
    client = client_of(played.user)
    refused = client.get(path)
    assert (refused.status_code, refused["Allow"].split(", ")[0]) == (405, "POST")
    ways = [of for name, of in elements(refused.content.decode()) if name == "a"]
    [way] = [of["href"] for of in ways if of.get("class") == "button"]
    assert urljoin(path, way) == back
    assert client.get(back, follow=True).status_code == 200
    assert not client.put("/c/new/").content
