"""Sharing a chat: its dialog and page, the list of a person's links, and their data."""

from __future__ import annotations

import io
import json
import zipfile
from datetime import timedelta
from typing import Any

import pytest
from django.core import checks
from django.utils import timezone

from conversations.checks import check_sharing
from conversations.library.conversations import delete_conversation
from conversations.library.shared_links import COUNTED, compute_token, list_own_links
from conversations.log.legal_holds import place_hold
from conversations.models import Conversation, SharedLink
from tests.support import people_and_turns, stored_turns
from tests.support.shared_links import path_of, shared, token_of
from tests.support.stored_turns import Played
from tests.web.pages import HTMX, chat_path, client_of, html_of, press

pytestmark = pytest.mark.django_db
TERMS = {"audience": "people", "ends": "30"}


@pytest.fixture
def ada() -> Played:
    return stored_turns.played()


def link_of(played: Played) -> SharedLink:
    return played.conversation.shared_links.get(revoked_at=None)


def days_left(link: SharedLink) -> float:
    assert link.expires_at is not None
    return (link.expires_at - timezone.now()) / timedelta(days=1)


def test_the_menu_leads_to_a_dialog_that_says_what_others_will_see(ada: Played) -> None:
    client, path = client_of(ada.user), f"{chat_path(ada)}/share/"
    menu = client.get(f"{chat_path(ada)}/menu/", headers=HTMX).content.decode()
    assert f'hx-get="{path}"' in menu
    html = client.get(path, headers=HTMX).content.decode()
    assert "What is said later is not shown" in " ".join(html.split())
    assert "<html" not in html
    assert "Make the link" in html_of(client, path)
    assert "Anybody who has the link" not in html


def test_the_link_is_made_in_the_dialog_and_the_chat_says_that_it_is_shared(ada: Played) -> None:
    client, path = client_of(ada.user), f"{chat_path(ada)}/share/"
    here = HTMX | {"HX-Current-URL": f"http://testserver{chat_path(ada)}/"}
    html = client.post(path, TERMS, headers=here).content.decode()
    link = link_of(ada)
    assert f'href="http://testserver{path_of(link)}"' in html
    assert 'id="shared" hx-swap-oob' in html
    assert 29.9 < days_left(link) < 30
    assert not link.with_tools
    assert "Others can read this chat by a link" in html_of(client, f"{chat_path(ada)}/")
    elsewhere = client.post(path, TERMS, headers=HTMX).content.decode()
    assert "hx-swap-oob" not in elsewhere
    html = client.post(f"{path}revoke/", headers=here).content.decode()
    assert "Nobody can open it any more" in html
    assert "Others can read" not in html_of(client, f"{chat_path(ada)}/")


def test_it_all_works_without_a_script(ada: Played) -> None:
    client, path = client_of(ada.user), f"{chat_path(ada)}/share/"
    assert press(client, path, **TERMS, with_tools="on")["Location"] == path
    html = html_of(client, path)
    assert f"http://testserver{path_of(link_of(ada))}" in html
    assert "The link works now." in html
    assert link_of(ada).with_tools
    press(client, path, audience="people", ends="as_is")
    assert not link_of(ada).with_tools
    assert press(client, f"{path}revoke/")["Location"] == path
    assert "The link was revoked." in html_of(client, path)


@pytest.mark.parametrize(
    ("ends", "day", "days"), [("1", "", 1), ("7", "", 7), ("never", "", None), ("day", 3, 3.5)]
)
def test_it_works_as_long_as_was_chosen(
    ends: str, day: Any, days: float | None, ada: Played
) -> None:
    on = str(timezone.localdate() + timedelta(days=day)) if day else ""
    press(client_of(ada.user), f"{chat_path(ada)}/share/", audience="people", ends=ends, day=on)
    link = link_of(ada)
    if days is None:
        assert link.expires_at is None
    else:
        assert abs(days_left(link) - days) <= 0.51


def test_a_change_keeps_the_end_and_shows_later_messages_if_asked(ada: Played) -> None:
    client, path = client_of(ada.user), f"{chat_path(ada)}/share/"
    press(client, path, **TERMS)
    before = link_of(ada)
    assert "With what was said since" not in html_of(client, path)
    people_and_turns.answered(people_and_turns.next_turn(ada.conversation))
    assert "With what was said since" in html_of(client, path)
    press(client, path, audience="people", ends="as_is", with_tools="on")
    assert (link_of(ada).leaf, link_of(ada).expires_at) == (1, before.expires_at)
    press(client, path, audience="people", ends="as_is", is_renewed="on")
    assert link_of(ada).leaf == 2
    assert link_of(ada).digest == before.digest


@pytest.mark.parametrize(
    ("field", "value"),
    [("audience", "public"), ("audience", ""), ("ends", ""), ("ends", "99"), ("ends", "as_is"),
     ("day", ""), ("day", "2001-01-01"), ("day", "9999-12-31"), ("day", "tomorrow")],
)  # fmt: skip
def test_what_cannot_be_chosen_is_refused_with_a_reason(
    field: str, value: str, ada: Played
) -> None:
    terms = TERMS | ({"ends": "day"} if field == "day" else {}) | {field: value}
    response = press(client_of(ada.user), f"{chat_path(ada)}/share/", **terms)
    assert response.status_code == 400
    assert 'role="alert"' in response.content.decode()
    assert not SharedLink.objects.exists()


def test_a_chat_that_cannot_be_shared_says_why(ada: Played) -> None:
    lease = people_and_turns.started_turn(people_and_turns.person("eve"))
    chat = people_and_turns.conversation_of(lease)
    html = press(client_of(chat.owner), f"/c/{chat.public_id}/share/", **TERMS).content.decode()
    assert "There is no answer to share yet." in html
    Conversation.objects.update(erase_at=timezone.now() + timedelta(hours=1))
    client = client_of(ada.user)
    html = press(client, f"{chat_path(ada)}/share/", **TERMS).content.decode()
    assert "A temporary chat cannot be shared." in html
    assert "Share…" not in html_of(client, f"{chat_path(ada)}/menu/")


def test_strangers_are_offered_where_the_site_has_such_links(ada: Played, settings: Any) -> None:
    settings.AGENTWEB_SHARING = "public"
    client, path = client_of(ada.user), f"{chat_path(ada)}/share/"
    assert "Anybody who has the link" in html_of(client, path)
    press(client, path, audience="public", ends="1")
    assert link_of(ada).audience == "public"


def test_where_there_are_no_links_nothing_leads_to_them(ada: Played, settings: Any) -> None:
    link = shared(ada.conversation)
    settings.AGENTWEB_SHARING = "off"
    client = client_of(ada.user)
    listed = html_of(client, "/settings/data/links/")
    assert "This site has no such links." in listed
    assert token_of(link) not in listed
    assert client.get(f"{chat_path(ada)}/share/").status_code == 404
    assert "Share…" not in html_of(client, f"{chat_path(ada)}/menu/")
    assert "/settings/data/links/" not in html_of(client, "/settings/data/")


def test_the_list_has_each_link_with_its_end_and_how_often_it_was_opened(ada: Played) -> None:
    link = shared(ada.conversation)
    old = shared(stored_turns.played(title="Old one").conversation, expires_at=timezone.now())
    shared(stored_turns.played("eve", title="Theirs").conversation)
    reader = client_of(people_and_turns.person("bob"))
    for _ in range(2):
        reader.get(path_of(link))
        SharedLink.objects.filter(pk=link.pk).update(opened_at=timezone.now() - COUNTED)
    client = client_of(ada.user)
    html = html_of(client, "/settings/data/links/")
    assert f"http://testserver{path_of(link)}" in html
    assert "opened 2 times" in html
    assert "its time is over" in html
    assert token_of(old) not in html
    assert "Theirs" not in html
    assert "/settings/data/links/" in html_of(client, "/settings/data/")
    press(client, f"{chat_path(ada)}/share/revoke/", next="/settings/data/links/")
    assert f"{chat_path(ada)}/share/" not in html_of(client, "/settings/data/links/")
    press(client, "/settings/data/links/revoke/")
    assert list_own_links(ada.user) == []
    assert "You share no chat by a link." in html_of(client, "/settings/data/links/")


def test_the_archive_of_a_person_lists_their_links_without_what_opens_them(ada: Played) -> None:
    link = shared(ada.conversation)
    shared(stored_turns.played("eve").conversation)
    response = client_of(ada.user).get("/settings/data/export.zip")
    archive = zipfile.ZipFile(io.BytesIO(b"".join(response)))  # type: ignore[arg-type]
    (row,) = json.loads(archive.read("links.json"))
    assert row["conversation"] == str(ada.conversation.public_id)
    assert (row["audience"], row["opened"], row["revoked_at"]) == ("people", 0, None)
    for secret in (compute_token(link), link.digest):
        assert secret not in str(row)


def test_deleting_ones_data_ends_the_links_of_what_is_held_too(ada: Played) -> None:
    link, staff = shared(ada.conversation), people_and_turns.person("root", is_staff=True)
    other = stored_turns.played()
    shared(other.conversation)
    place_hold(actor_id=staff.pk, reason="Case 4711", public_id=ada.conversation.public_id)
    press(client_of(ada.user), "/settings/data/delete/", name="ada")
    assert Conversation.objects.filter(pk=ada.conversation.pk).exists()
    row = SharedLink.objects.get()
    assert row.pk == link.pk
    assert row.revoked_by == ada.user


def test_a_chat_in_the_trash_is_not_shared_by_its_pages(ada: Played) -> None:
    shared(ada.conversation)
    delete_conversation(conversation=ada.conversation)
    client = client_of(ada.user)
    for path in ("share/", "share/revoke/"):
        assert client.post(f"{chat_path(ada)}/{path}", TERMS).status_code == 404
    assert f"{chat_path(ada)}/share/" not in html_of(client, "/settings/data/links/")


@pytest.mark.parametrize(("word", "is_known"), [("off", True), ("public", True), ("all", False)])
def test_a_word_for_sharing_that_means_nothing_is_reported(
    word: str, is_known: bool, settings: Any
) -> None:
    settings.AGENTWEB_SHARING = word
    found: list[checks.CheckMessage] = check_sharing()
    assert [one.id for one in found] == ([] if is_known else ["agentweb.E008"])
