"""The updates of an open chat over HTTP: all after a bookmark, and nothing where nothing is new."""

from __future__ import annotations

import pytest
from django.http import HttpResponse
from django.test import Client

from conversations.live.hub import hub
from conversations.models import Conversation
from conversations.transcript.paging import read_bookmark
from conversations.transcript.shapes import Live
from tests.support import people_and_turns
from tests.support.stored_turns import Played
from tests.web.pages import client_of

pytestmark = pytest.mark.django_db


def read(client: Client, conversation: Conversation, **asked: object) -> HttpResponse:
    return client.get(f"/c/{conversation.public_id}/events/", asked, headers={"HX-Request": "true"})


def test_what_follows_the_bookmark_comes_once(played: Played) -> None:
    client = client_of(played.user)
    whole = read(client, played.conversation)
    assert 'id="turn-1"' in whole.content.decode()
    version = whole["Page-Version"]
    assert read(client, played.conversation, version=version).status_code == 204
    at = read_bookmark(played.conversation, 1)
    people_and_turns.next_turn(played.conversation)
    after = read(client, played.conversation, version=version, after=at.after, mark=at.mark)
    assert after.status_code == 200
    assert int(after["Page-Version"]) > int(version)
    assert 'id="turn-2"' in after.content.decode()
    assert 'id="turn-1"' not in after.content.decode()


def test_an_answer_that_runs_here_comes_with_its_text(played: Played) -> None:
    lease = people_and_turns.next_turn(played.conversation)
    people_and_turns.opened(lease)
    client = client_of(played.user)
    topic = hub.enter(played.conversation.pk)
    try:
        topic.live = Live(2, 1, "", "<p>Closed.</p>", "<p>On its w</p>")
        topic.progress["toolu_1"] = '<div id="progress"></div>'
        found = read(client, played.conversation)
    finally:
        hub.leave(played.conversation.pk)
    text = found.content.decode()
    assert "On its w" in text
    assert text.endswith('<div id="progress"></div>')
    # Its text grows without a new version.
    known = read(client, played.conversation, version=found["Page-Version"])
    assert known.status_code == 200


def test_another_person_has_no_such_chat(played: Played) -> None:
    other = client_of(people_and_turns.person("eve"))
    assert read(other, played.conversation).status_code == 404
    assert read(Client(), played.conversation).status_code in (302, 401)
