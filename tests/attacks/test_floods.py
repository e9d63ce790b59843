"""One person who asks for too much: bounded, told so, and nobody else waits."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from conversations.models import Conversation, Turn
from conversations.web import streamed_downloads
from tests.support import people_and_turns, stored_turns

pytestmark = pytest.mark.django_db


def client_of(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_downloads_of_one_person_are_made_a_few_at_a_time() -> None:
    ada, eve = stored_turns.played("ada"), stored_turns.played("eve")
    mine, theirs = client_of(ada.user), client_of(eve.user)
    url = f"/c/{ada.conversation.public_id}/export.json"
    held = [iter(mine.get(url)) for _ in range(streamed_downloads.MOST_AT_ONCE)]
    begun = [next(each) for each in held]
    assert all(begun)
    refused = [mine.get(url) for _ in range(20)]
    assert {each.status_code for each in refused} == {429}
    assert b"still on their way" in refused[-1].content
    assert mine.get("/settings/data/export.zip").status_code == 429
    assert theirs.get("/settings/data/export.zip").status_code == 200
    assert b"4711" in begun[0] + b"".join(held[0])
    assert [b"4711" in b"".join(mine.get(url)) for _ in range(5)] == [True] * 5
    for each in held:
        b"".join(each)
    assert streamed_downloads._running == {}


def test_a_flood_of_conversations_is_bounded_and_says_so(settings: Any) -> None:
    settings.AGENTWEB_MAX_LIVE_TURNS = 3
    place, eve = stored_turns.played(), people_and_turns.person("eve")
    client = client_of(place.user)
    sent = [client.post("/c/start/", {"text": f"Hello {at}", "client_id": str(uuid4())})
            for at in range(12)]  # fmt: skip
    assert [each.status_code for each in sent] == [302] * 3 + [400] * 9
    assert Turn.objects.filter(state="queued").count() == 3
    assert client_of(eve).post("/c/start/", {"text": "Hello"}).status_code == 302


def test_a_title_of_a_megabyte_is_refused_and_a_search_takes_what_it_takes(
    django_assert_max_num_queries: Any,
) -> None:
    place = stored_turns.played()
    client = client_of(place.user)
    title = client.post(f"/c/{place.conversation.public_id}/menu/rename/", {"title": "x" * 10**6})
    assert title.status_code == 400
    assert b"at most 200 characters" in title.content
    assert len(Conversation.objects.get().title) <= 200
    for asked in ("%_" * 1_000, '"' * 1_000, "a*" * 500, "(a+)+$" * 100, "a OR b NOT c", "\\" * 500,
                  "a " * 1_000, ":* & | ! <->" * 50, "\u0301" * 900, "NEAR(a, b)"):  # fmt: skip
        with django_assert_max_num_queries(40):
            assert client.get("/search/", {"q": asked}).status_code == 200


def test_stopping_again_and_again_stops_once(monkeypatch: pytest.MonkeyPatch) -> None:
    place = stored_turns.played()
    client = client_of(place.user)
    chat = f"/c/{place.conversation.public_id}"
    before = people_and_turns.everything()
    assert client.post(f"{chat}/stop/").status_code == 302
    assert people_and_turns.everything() == before
    client.post(f"{chat}/send/", {"text": "Next"})
    client.post(f"{chat}/stop/")
    once = people_and_turns.everything()
    for _ in range(20):
        assert client.post(f"{chat}/stop/").status_code == 302
    assert people_and_turns.everything() == once
    turn = place.conversation.turns.latest("number")
    assert (turn.state, turn.finish_reason) != ("queued", "")
