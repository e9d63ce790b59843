"""Pinning originals from the pages: set, shown, refused with a reason, removed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from conversations.context.policy.policy import Policy
from conversations.context.view import edits
from conversations.log import append
from conversations.log.turn_state import load_state
from conversations.models import Conversation, Pin, Transformation
from conversations.reductions.manual_changes import compact_now
from conversations.reductions.original_state import read_original_state
from conversations.reductions.pins import list_pins, list_pins_by_id
from conversations.reductions.removed_originals import list_removed
from conversations.transcript import transcript
from conversations.transfer.importing import import_recording
from conversations.transfer.recordings import read_record
from tests.support import people_and_turns, stored_turns
from tests.support.open_pages import opened, shown
from tests.support.stored_turns import LONG, Played
from tests.web.pages import chat_path, client_of, html_of, press
from tests.web.tags import acting, elements

pytestmark = pytest.mark.django_db
PAYLOAD = "<img src=x onerror=alert(1)>"


@pytest.fixture
def client(played: Played) -> Client:
    return client_of(played.user)


def compaction(played: Played) -> str:
    seq = played.conversation.transformations.get(kind="compaction").seq
    return f"{chat_path(played)}/inspect/events/{seq}/"


def test_a_pinned_result_is_marked_in_the_transcript(client: Client, played: Played) -> None:
    before = html_of(client, f"{chat_path(played)}/")
    assert "is-pinned" not in before
    assert f'action="{chat_path(played)}/pin/"' in before
    assert (
        press(client, f"{chat_path(played)}/pin/", id="toolu_1")["Location"]
        == f"{chat_path(played)}/"
    )
    after = html_of(client, f"{chat_path(played)}/")
    assert after.count("keep is-pinned") == 1
    assert f'action="{chat_path(played)}/unpin/"' in after
    press(client, f"{chat_path(played)}/unpin/", id="toolu_1")
    assert "is-pinned" not in html_of(client, f"{chat_path(played)}/")


def test_prompts_and_answers_can_be_pinned_too(client: Client, played: Played) -> None:
    html = html_of(client, f"{chat_path(played)}/")
    ids = {a.get("value") for t, a in elements(html) if t == "input" and a.get("name") == "id"}
    answer = played.conversation.messages.filter(kind="answer").latest("seq").seq
    assert {"toolu_1", "msg_1", f"msg_{answer}"} == ids
    for name in ids:
        assert press(client, f"{chat_path(played)}/pin/", id=str(name)).status_code == 302
    assert html_of(client, f"{chat_path(played)}/").count("keep is-pinned") == 3


def test_with_htmx_the_button_comes_back_in_its_new_state(client: Client, played: Played) -> None:
    for _ in range(2):
        response = press(client, f"{chat_path(played)}/pin/", htmx=True, id="toolu_1")
        html = response.content.decode()
        assert response.status_code == 200
        assert 'class="keep is-pinned"' in html
        assert "<section" not in html
    html = press(client, f"{chat_path(played)}/unpin/", htmx=True, id="toolu_1").content.decode()
    assert f'hx-post="{chat_path(played)}/pin/"' in html
    path = f"{compaction(played)}restore/"
    assert press(client, path, htmx=True).content.decode().strip() == ""


@pytest.mark.django_db(transaction=True)
def test_every_tab_is_told_of_a_restore_by_the_socket() -> None:
    played = stored_turns.played()
    played.conversation.refresh_from_db()
    version = played.conversation.version
    with opened(played.conversation.pk, version) as topic:
        press(client_of(played.user), f"{chat_path(played)}/pin/", htmx=True, id="toolu_1")
        (turn,) = shown(topic)
    assert "Context restored" in turn
    assert "/undo/" in turn
    assert 'id="meter"' in turn


def test_everything_a_reduction_took_comes_back_by_its_marker(
    client: Client, played: Played
) -> None:
    html = html_of(client, f"{chat_path(played)}/")
    assert f'action="{compaction(played)}restore/"' in html
    page = html_of(client, compaction(played))
    assert "Send in full next time" in page
    response = press(client, f"{compaction(played)}restore/", next=compaction(played))
    assert response["Location"] == compaction(played)
    assert list_pins(played.conversation) == {"toolu_1"}
    assert "Pinned" in html_of(client, compaction(played))


def test_a_reduction_of_many_messages_is_restored_whole(client: Client, played: Played) -> None:
    talk = [("user", "And then?"), ("assistant", "It is blue and long enough.")] * 1_050
    record = {"id": "long", "system": None, "tools": [], "facts": []}
    record["messages"] = [
        {"role": role, "content": [{"type": "text", "text": text}]} for role, text in talk
    ]
    recording = read_record(json.dumps(record).encode())
    long = import_recording(user=played.user, recording=recording, model=stored_turns.MODEL)
    who = {"conversation_id": long.pk, "actor_id": played.user.pk}
    row = compact_now(**who, wanted="turns", digest=None)
    removed = list_removed(long, row)
    assert len(removed) > 1_000
    path = f"/c/{long.public_id}/inspect/events/{row.seq}/restore/"
    assert press(client, path, htmx=True).status_code == 200
    assert len(list_pins_by_id(long.pk)) == len(removed)
    view = load_state(Conversation.objects.get(pk=long.pk), stored_turns.MODEL).view
    assert len(view.messages) == len(talk)


def test_a_restore_has_a_page_and_is_taken_back_from_it(client: Client, played: Played) -> None:
    press(client, f"{chat_path(played)}/pin/", id="toolu_1")
    row = Transformation.objects.get(kind="restore")
    path = f"{chat_path(played)}/inspect/events/{row.seq}/"
    html = html_of(client, path)
    assert "Context restored" in html
    assert "asked for by <bdi>ada</bdi>" in html
    assert "4711-ÄÖ" in html
    assert f'action="{path}undo/"' in html
    assert press(client, f"{path}undo/", next=path)["Location"] == path
    assert not list_pins(played.conversation)
    assert f'action="{path}undo/"' not in html_of(client, path)
    undone = Transformation.objects.latest("pk")
    assert "Nothing was changed" in html_of(
        client, f"{chat_path(played)}/inspect/events/{undone.seq}/"
    )
    assert press(client, f"{path}undo/").status_code == 409


def test_the_page_of_an_original_says_how_it_stands(client: Client, played: Played) -> None:
    path = f"{chat_path(played)}/tools/toolu_1/"
    assert "sent to the model shortened" in html_of(client, path)
    assert "Send in full next time" in html_of(client, path)
    assert press(client, f"{chat_path(played)}/pin/", id="toolu_1", next=path)["Location"] == path
    assert "sent to the model in full" in html_of(client, path)
    assert "in full" in html_of(client, f"{chat_path(played)}/tools/msg_1/")


def test_what_was_dropped_is_said_and_comes_back(client: Client) -> None:
    lease = people_and_turns.started_turn(people_and_turns.person("bob"), "First")
    people_and_turns.answered(lease)
    for at in range(3):
        lease = people_and_turns.next_turn(
            people_and_turns.conversation_of(lease), f"Question {at}"
        )
        people_and_turns.answered(lease)
    lease = people_and_turns.next_turn(people_and_turns.conversation_of(lease), "Last")
    conversation = people_and_turns.conversation_of(lease)
    view = stored_turns.loaded(lease).view
    gone = view.messages[2], view.messages[3]
    trigger = edits.Trigger(9, 1, "counted", "max_conversation_messages")
    edit = edits.SpliceMessages(gone[0].seq, gone[1].seq)
    change = edits.build_transformation(view, "trim", trigger, (edit,), "Dropped 2")
    row = append.record_transformation(
        lease=lease, change=change, policy=Policy(), summary_call=None
    )
    people_and_turns.answered(lease)
    conversation.refresh_from_db()
    assert list_removed(conversation, row) == [f"msg_{message.seq}" for message in gone]
    found = read_original_state(conversation, f"msg_{gone[0].seq}")
    assert found is not None
    assert (found.is_reduced, found.text) == (True, "not sent to the model any more")
    own = Client()
    own.force_login(conversation.owner)
    path = f"/c/{conversation.public_id}/inspect/events/{row.seq}/"
    assert "Not sent any more" in html_of(own, path)
    assert press(own, f"{path}restore/").status_code == 302
    conversation.refresh_from_db()
    found = read_original_state(conversation, f"msg_{gone[0].seq}")
    assert found is not None
    assert not found.is_reduced
    assert list_pins(conversation) == {message.seq for message in gone}
    restored = conversation.transformations.get(kind="restore").seq
    assert "Not sent before" in html_of(
        own, f"/c/{conversation.public_id}/inspect/events/{restored}/"
    )


@pytest.mark.parametrize("htmx", [True, False])
def test_a_refusal_says_why_and_changes_nothing(
    client: Client, played: Played, htmx: bool, settings: Any
) -> None:
    settings.AGENTWEB_PINNED_PERCENT = 0
    before = people_and_turns.everything()
    response = press(client, f"{chat_path(played)}/pin/", htmx=htmx, id="toolu_1")
    assert response.status_code == 400
    assert b"Unpin something first" in response.content
    assert (response.get("HX-Retarget", "").startswith("#composer-error")) is htmx
    response = press(client, f"{chat_path(played)}/pin/", htmx=htmx, id=PAYLOAD)
    assert response.status_code == 400
    assert not acting(response.content.decode())
    assert people_and_turns.everything() == before


def test_nothing_is_put_back_while_an_answer_is_on_its_way(client: Client, played: Played) -> None:
    people_and_turns.next_turn(played.conversation)
    response = press(client, f"{chat_path(played)}/pin/", htmx=True, id="toolu_1")
    assert response.status_code == 409
    assert b"on its way" in response.content
    assert press(client, f"{compaction(played)}restore/").status_code == 409
    assert not Pin.objects.exists()


def test_a_form_leads_back_to_our_own_pages_alone(client: Client, played: Played) -> None:
    home = f"{chat_path(played)}/"
    for wanted in (
        "//evil.example",
        "https://evil.example/",
        "/\\evil.example",
        "javascript:x",
        "x",
    ):
        response = press(client, f"{chat_path(played)}/unpin/", id="toolu_1", next=wanted)
        assert response["Location"] == home, wanted


def test_what_takes_nothing_is_not_restored_and_what_is_no_restore_not_undone(
    client: Client, played: Played
) -> None:
    summary = played.conversation.transformations.get(kind="summary")
    path = f"{chat_path(played)}/inspect/events/{summary.seq}"
    assert press(client, f"{path}/restore/").status_code == 400
    assert press(client, f"{path}/undo/").status_code == 404
    assert press(client, f"{chat_path(played)}/inspect/events/999/undo/").status_code == 404
    assert press(client, f"{chat_path(played)}/inspect/events/999/restore/").status_code == 404
    assert list_removed(played.conversation, summary) == []


def test_a_hostile_id_is_text(played: Played, client: Client) -> None:
    turn = transcript.read_turn(played.conversation, 1)
    assert turn.prompt_keep == replace(turn.prompt_keep, is_pinned=False)  # type: ignore[type-var]
    html = press(client, f"{chat_path(played)}/unpin/", htmx=True, id=PAYLOAD).content.decode()
    assert not acting(html)
    assert "&lt;img" in html


def test_pins_cost_one_query_however_many_there_are(client: Client, played: Played) -> None:
    counts = []
    for _ in range(4):
        for name in ("toolu_1", "msg_1"):
            press(client, f"{chat_path(played)}/pin/", id=name)
            press(client, f"{chat_path(played)}/unpin/", id=name)
        paths = (f"{chat_path(played)}/", compaction(played), f"{chat_path(played)}/tools/toolu_1/")
        found = []
        for path in paths:
            with CaptureQueriesContext(connection) as queries:
                client.get(path)
            found.append(len(queries))
        counts.append(found)
    # The first pin changes what is sent next, which is forecast once.
    assert counts[1] == counts[2] == counts[3]


def test_originals_of_a_transcript_stay_whatever_is_pinned(client: Client, played: Played) -> None:
    press(client, f"{chat_path(played)}/pin/", id="toolu_1")
    assert LONG[:40] in html_of(client, f"{chat_path(played)}/tools/toolu_1/")
