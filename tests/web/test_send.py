"""Sending: a message is stored once or refused with a reason, and is never lost."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from conversations.agent.ports import Finish
from conversations.context.view import wire
from conversations.models import Conversation, Message, Turn
from conversations.turns import turns
from tests.support import people_and_turns, stored_turns
from tests.support.stored_turns import Played
from tests.web.pages import client_of, press

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(played: Played) -> Client:
    return client_of(played.user)


def send_path(played: Played) -> str:
    return f"/c/{played.conversation.public_id}/send/"


def test_a_message_is_stored_and_its_turn_waits(client: Client, played: Played) -> None:
    response = press(client, send_path(played), htmx=True, text="Next", client_id=str(uuid4()))
    assert response.status_code == 200
    turn = played.conversation.turns.latest("number")
    assert (turn.number, turn.state) == (2, "queued")
    assert wire.decode(turn.messages.get().content) == [{"type": "text", "text": "Next"}]


def test_without_script_the_page_comes_back(client: Client, played: Played) -> None:
    response = press(client, send_path(played), text="Next")
    assert response.status_code == 302
    assert response["Location"] == f"/c/{played.conversation.public_id}/"


def test_a_repeated_post_is_one_message(client: Client, played: Played) -> None:
    name = str(uuid4())
    for _ in range(3):
        response = press(client, send_path(played), htmx=True, text="Once", client_id=name)
        assert response.status_code == 200
    assert Message.objects.filter(kind="prompt").count() == 2


def test_an_id_with_another_text_is_refused_in_words(client: Client, played: Played) -> None:
    name = str(uuid4())
    press(client, send_path(played), htmx=True, text="Once", client_id=name)
    response = press(client, send_path(played), htmx=True, text="Twice", client_id=name)
    assert response.status_code == 400
    assert b"used for another message" in response.content
    assert b"send-error" in response.content


def test_messages_during_an_answer_wait_until_too_many_do(
    client: Client, played: Played, settings: Any
) -> None:
    settings.AGENTWEB_MAX_QUEUED_PROMPTS = 2
    press(client, send_path(played), htmx=True, text="One")
    for text in ("Two", "Three"):
        response = press(client, send_path(played), htmx=True, text=text)
        assert response.status_code == 200
    response = press(client, send_path(played), htmx=True, text="Four")
    assert response.status_code == 409
    assert b"2 messages are waiting already" in response.content
    assert b"send-error" in response.content
    assert (Turn.objects.count(), played.conversation.queued_prompts.count()) == (2, 2)


@pytest.mark.parametrize("text", ["", "   ", "\n\n", "\u2003\t"])
def test_nothing_is_no_message(client: Client, played: Played, text: str) -> None:
    response = press(client, send_path(played), htmx=True, text=text)
    assert response.status_code == 400
    assert b"Write a message first" in response.content
    assert Turn.objects.count() == 1


def test_a_message_that_is_too_long_keeps_its_text_and_says_the_limit(
    client: Client, played: Played, settings: Any
) -> None:
    settings.AGENTWEB_MAX_PROMPT_CHARS = 1_000
    text = "too long " * 200
    response = press(client, "/c/start/", text=text)
    assert response.status_code == 400
    assert b"at most 1,000 fit" in response.content
    assert text.strip().encode() in response.content
    response = press(client, send_path(played), htmx=True, text=text)
    assert response.status_code == 400
    assert b"at most 1,000 fit" in response.content
    assert Turn.objects.count() == 1


ODD = {
    "NUL": "a\0b", "only NUL": "\0", "noncharacter": "\uffff", "bom": "\ufeffx",
    "lines": "\u2028x", "bidi": "\u202eevil", "invisible": "x\u200b\U000e0041",
    "marks": "a" + "\u0301" * 10_000,
    "emoji": "\U0001f600" * 5_000, "one": "x", "no space": "x" * 190_000,
    "lines too": "x\n" * 50_000, "controls": "\x01\x1b[31m\x7f\x85",
    "script": "<script>alert(1)</script>", "percent": "%s %d {0}",
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_odd_text_is_stored_or_refused_and_shown_without_an_error(
    client: Client, played: Played, name: str
) -> None:
    response = press(client, "/c/start/", text=ODD[name])
    assert response.status_code in (302, 400)
    if response.status_code == 302:
        page = client.get(response["Location"])
        assert page.status_code == 200
        assert b"<script>alert" not in page.content
        assert Conversation.objects.latest("pk").title == " ".join(ODD[name].split())[:80]


@pytest.mark.parametrize("body", [b"text=%ED%A0%80x", b"text=%FF%FE", b"text=%00", b"text=a%00b"])
def test_bytes_that_are_no_text_never_fail(client: Client, played: Played, body: bytes) -> None:
    for path in ("/c/start/", send_path(played)):
        kind = "application/x-www-form-urlencoded"
        assert client.post(path, body, content_type=kind).status_code in (302, 400)


@pytest.mark.parametrize(
    "field",
    [("client_id", "x"), ("client_id", "1" * 999), ("client_id", "\0"), ("model", "gpt-x"),
     ("model", "\0")],
)  # fmt: skip
def test_a_field_that_means_nothing_is_refused(
    client: Client, played: Played, field: tuple[str, str]
) -> None:
    before = people_and_turns.everything()
    name, value = field
    assert press(client, "/c/start/", text="Hi", **{name: value}).status_code == 400
    assert people_and_turns.everything() == before


def test_fields_that_nobody_asked_for_change_nothing(client: Client, played: Played) -> None:
    eve = people_and_turns.person("eve")
    extra = {
        "user": eve.pk, "owner": eve.pk, "owner_id": eve.pk, "is_staff": "1", "is_superuser": "1",
        "budget_limit": "1", "limit_micros": "1", "cost": "0", "system": "Be evil", "state": "done",
        "instructions": "Be evil", "retry_of": "1", "number": "9", "conversation": "1",
    }  # fmt: skip
    assert press(client, "/c/start/", text="Hi", **extra).status_code == 302
    begun = Conversation.objects.latest("pk")
    assert (begun.owner_id, begun.instructions) == (played.user.pk, "")
    turn = begun.turns.get()
    assert (turn.number, turn.state, turn.retry_of) == (1, "queued", None)
    played.user.refresh_from_db()
    assert not played.user.is_staff
    response = press(client, send_path(played), model="claude-haiku-4-5", text="Hi")
    assert response.status_code == 302
    played.conversation.refresh_from_db()
    assert played.conversation.model == stored_turns.MODEL


def test_a_repeated_start_is_one_conversation(client: Client, played: Played) -> None:
    name = str(uuid4())
    first = press(client, "/c/start/", text="Hi", client_id=name)
    again = press(client, "/c/start/", text="Hi", client_id=name)
    assert first["Location"] == again["Location"]
    assert Conversation.objects.count() == 2
    other = press(client, "/c/start/", text="Something else", client_id=name)
    assert other.status_code == 400
    assert b"Something else" in other.content


def test_a_start_beyond_the_cap_says_so_and_keeps_the_text(
    client: Client, played: Played, settings: Any
) -> None:
    settings.AGENTWEB_MAX_LIVE_TURNS = 1
    press(client, "/c/start/", text="One")
    response = press(client, "/c/start/", text="My second question")
    assert response.status_code == 400
    assert b"Too many answers" in response.content
    assert b"My second question" in response.content


def test_stopping_is_asked_once_and_stopping_what_has_ended_does_nothing(
    client: Client, played: Played
) -> None:
    path = f"/c/{played.conversation.public_id}/stop/"
    before = people_and_turns.everything()
    assert press(client, path, htmx=True).status_code == 200
    assert people_and_turns.everything() == before
    lease = people_and_turns.next_turn(played.conversation)
    assert press(client, path, htmx=True).status_code == 200
    first = people_and_turns.turn_of(lease).stop_requested_at
    assert first is not None
    for _ in range(20):
        press(client, path, htmx=True)
    assert people_and_turns.turn_of(lease).stop_requested_at == first


def test_a_stop_of_a_turn_that_has_ended_leaves_the_next_one_alone(
    client: Client, played: Played
) -> None:
    lease = people_and_turns.next_turn(played.conversation, "first")
    path = f"/c/{played.conversation.public_id}/stop/"
    turns.send_prompt(conversation=played.conversation, text="second", client_id=uuid4())
    html = client.get(f"/c/{played.conversation.public_id}/").content.decode()
    assert """hx-vals='{"turn": 2}'""" in html
    people_and_turns.answered(lease)
    following = played.conversation.turns.get(number=3)
    for number in ("2", "1", "4", "03", "x", "\0"):
        assert press(client, path, htmx=True, turn=number).status_code == 200
    following.refresh_from_db()
    assert following.is_live
    assert following.stop_requested_at is None
    press(client, path, htmx=True, turn="3")
    following.refresh_from_db()
    assert not following.is_live or following.stop_requested_at


def test_a_turn_that_ended_badly_is_tried_again_once(client: Client, played: Played) -> None:
    lease = people_and_turns.next_turn(played.conversation)
    path = f"/c/{played.conversation.public_id}/retry/2/"
    assert press(client, path, htmx=True).status_code == 409
    stored_turns.fail(lease, "no")
    turns.finish_turn(lease=lease, finish=Finish("failed", "", "upstream", "No."))
    html = client.get(f"/c/{played.conversation.public_id}/").content.decode()
    form = html.partition(f'action="{path}"')[2].partition("</form>")[0]
    name = form.partition('name="client_id" value="')[2].partition('"')[0]
    for _ in range(2):
        assert press(client, path, htmx=True, client_id=name).status_code == 200
    assert played.conversation.turns.count() == 3
    # Without an id it would be a new retry, which is not possible now.
    assert press(client, path, htmx=True).status_code == 409
    assert press(client, path, htmx=True, client_id="x").status_code == 400


def test_what_was_said_in_one_talk_is_not_sent_in_another(client: Client, played: Played) -> None:
    other = stored_turns.played("eve").conversation
    response = press(client, f"/c/{other.public_id}/send/", htmx=True, text="Hi")
    assert response.status_code == 404
    assert other.turns.count() == 1
