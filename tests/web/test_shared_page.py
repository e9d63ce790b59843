"""The page of a link, as its readers get it: no script, no trace for machines, one refusal."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from conversations.library.conversations import delete_conversation
from conversations.library.erase import erase_due_conversations
from conversations.library.shared_links import COUNTED, record_opening, revoke_links
from conversations.models import FailedLogIns, SharedLink, User
from tests.library.test_erase import after
from tests.support import people_and_turns, stored_turns
from tests.support.attached_files import NOTES, PNG, kept, started
from tests.support.shared_links import path_of, shared
from tests.transcript.test_transcript import long_conversation
from tests.web.pages import client_of, html_of
from tests.web.tags import elements

pytestmark = pytest.mark.django_db


@pytest.fixture
def eve() -> Client:
    return client_of(people_and_turns.person("eve"))


@pytest.fixture
def public(settings: Any) -> None:
    settings.AGENTWEB_SHARING = "public"


def opened() -> int:
    return SharedLink.objects.get().opened


def test_the_page_is_the_chat_to_read_and_nothing_else(eve: Client) -> None:
    played = stored_turns.played(title="Read the <b>file</b>")
    html = html_of(eve, path_of(shared(played.conversation)))
    assert "Read the &lt;b&gt;file&lt;/b&gt;" in html
    assert "The order is 4711-ÄÖ." in html
    tags = {tag for tag, _ in elements(html)}
    assert not tags & {"script", "form", "button", "textarea", "iframe", "dialog"}
    for word in ("A line of the file", "Thinking", "compacted", "$", "ada", "/c/", "/inspect/"):
        assert word not in html, word
    assert "A line of the file" in html_of(
        eve, path_of(shared(played.conversation, with_tools=True))
    )


def test_who_reads_by_a_link_can_do_nothing_to_the_chat(eve: Client) -> None:
    played = stored_turns.played()
    path = path_of(shared(played.conversation))
    assert eve.get(path).status_code == 200
    before = people_and_turns.everything()
    for form in ("send/", "stop/", "edit/1/", "retry/1/", "fork/1/", "share/", "share/revoke/"):
        assert (
            eve.post(f"/c/{played.conversation.public_id}/{form}", {"text": "x"}).status_code == 404
        )
    assert eve.get(f"/c/{played.conversation.public_id}/").status_code == 404
    assert people_and_turns.everything() == before


def test_no_machine_keeps_it_and_no_other_site_learns_its_address(eve: Client) -> None:
    path = path_of(shared(stored_turns.played().conversation))
    for address in (path, "/s/unknown/"):
        response = eve.get(address)
        assert "noindex" in response["X-Robots-Tag"]
        assert response["Referrer-Policy"] == "no-referrer"
        assert response["Cache-Control"] == "private, no-store"
        assert "script-src 'self'" in response["Content-Security-Policy"]
    assert '<meta name="robots" content="noindex' in html_of(eve, path)


def test_everything_that_does_not_work_is_answered_alike(eve: Client, settings: Any) -> None:
    gone = eve.get("/s/unknown/")
    assert gone.status_code == 404
    assert "This link does not work" in gone.content.decode()
    played = stored_turns.played()

    def ends(end: Any) -> None:
        other = stored_turns.played()
        link = shared(other.conversation)
        assert eve.get(path_of(link)).status_code == 200
        end(other, link)
        answer = eve.get(path_of(link))
        assert (answer.status_code, answer.content) == (404, gone.content)

    ends(lambda other, link: revoke_links(owner=other.user, peer=""))
    ends(lambda other, link: SharedLink.objects.update(expires_at=timezone.now()))
    ends(lambda other, link: delete_conversation(conversation=other.conversation))

    def erase(other: Any, link: SharedLink) -> None:
        delete_conversation(conversation=other.conversation)
        assert erase_due_conversations(now=after(31))

    ends(erase)
    ends(lambda other, link: User.objects.filter(pk=played.user.pk).update(is_active=False))
    link = shared(stored_turns.played("bob").conversation)
    settings.AGENTWEB_SHARING = "off"
    assert eve.get(path_of(link)).content == gone.content


def test_strangers_are_sent_to_the_log_in_and_come_back(settings: Any) -> None:
    path = path_of(shared(stored_turns.played().conversation))
    for mode in ("people", "public", "off"):
        settings.AGENTWEB_SHARING = mode
        response = Client().get(f"{path}?after=0")
        assert response["Location"] == f"/accounts/login/?next={path}%3Fafter%3D0"
        assert "noindex" in response["X-Robots-Tag"]


@pytest.mark.usefixtures("public")
def test_a_stranger_reads_by_a_public_link() -> None:
    path = path_of(shared(stored_turns.played().conversation, "public"))
    assert "The order is 4711-ÄÖ." in html_of(Client(), path)
    assert opened() == 1


def test_it_is_counted_how_often_others_open_it(eve: Client) -> None:
    played = stored_turns.played()
    path = path_of(shared(played.conversation))
    for client in (client_of(played.user), eve):
        client.head(path)
        client.get(path)
        client.get(f"{path}?after=1")
    assert opened() == 1
    assert SharedLink.objects.get().opened_at is not None


def test_who_loads_it_over_and_over_is_counted_once_a_minute_and_writes_no_more(
    eve: Client,
) -> None:
    path = path_of(shared(stored_turns.played().conversation))
    found = [statements(eve, path) for _ in range(3)]
    assert [each.count("UPDATE") for each in found] == [1, 0, 0]
    assert [len(each) for each in found] == [14, 13, 13]
    row = SharedLink.objects.get()
    row.opened_at = None
    # As a request that was begun at the same time as the first one.
    record_opening(row)
    assert opened() == 1
    before = timezone.now() - COUNTED
    SharedLink.objects.update(opened_at=before)
    eve.get(path)
    row.refresh_from_db()
    assert row.opened == 2
    assert row.opened_at is not None
    assert row.opened_at > before


def statements(client: Client, path: str) -> list[str]:
    """Return the verbs of the statements of a page."""
    with CaptureQueriesContext(connection) as found:
        assert client.get(path).status_code == 200
    return [str(one["sql"]).split()[0] for one in found.captured_queries]


def test_a_long_chat_is_read_page_by_page(eve: Client) -> None:
    path = path_of(shared(long_conversation(21)))
    assert html_of(eve, path).count('class="turn"') == 20
    assert f'href="{path}?after=20"' in html_of(eve, path)
    last = html_of(eve, f"{path}?after=20")
    assert last.count('class="turn"') == 1
    assert f'href="{path}"' in last
    for odd in ("x", "-1", "9" * 30, "", "²"):
        assert html_of(eve, f"{path}?after={odd}").count('class="turn"') == 20


def test_files_are_sent_below_the_link_alone_and_nobody_keeps_them(eve: Client) -> None:
    user = people_and_turns.person()
    files = [kept(user, PNG, "cat.png"), kept(user, NOTES, "notes.txt")]
    turn = started(user, *files)
    people_and_turns.answered(people_and_turns.claimed(turn))
    path = path_of(shared(turn.conversation))
    html = eve.get(path).content.decode()
    for file, shown in zip(files, ("inline", "attachment"), strict=True):
        address = f"{path}files/{file.public_id}"
        assert f'="{address}"' in html
        response = eve.get(address)
        assert response.status_code == 200
        assert response["Content-Disposition"].startswith(shown)
        assert response["Cache-Control"] == "private, no-store"
        assert "sandbox" in response["Content-Security-Policy"]
        assert eve.get(f"/files/{file.public_id}").status_code == 404
        assert eve.post(f"/files/{file.public_id}/remove/").status_code == 404
        assert eve.get(f"/s/unknown/files/{file.public_id}").status_code == 404
        assert Client().get(address).status_code == 302
    assert f"/files/{files[1].public_id}/text/" not in html
    revoke_links(owner=user, peer="")
    assert eve.get(address).status_code == 404


def test_nothing_is_sent_to_it(eve: Client) -> None:
    path = path_of(shared(stored_turns.played().conversation))
    before = people_and_turns.everything()
    for method in ("post", "put", "patch", "delete"):
        assert getattr(eve, method)(path).status_code == 405
    assert people_and_turns.everything() == before


@pytest.mark.usefixtures("public")
def test_guesses_of_strangers_are_counted_and_keep_nobody_from_logging_in(settings: Any) -> None:
    settings.AGENTWEB_LOG_IN_ATTEMPTS_OF_ADDRESS = 3
    good = path_of(shared(stored_turns.played().conversation, "public"))
    client = Client()
    found = [client.get(f"/s/guess{at}/").status_code for at in range(5)]
    assert found == [404, 404, 404, 429, 429]
    assert client.get(good).status_code == 200
    assert "Log in" in client.get("/accounts/login/").content.decode()
    wrong = {"username": "ada", "password": "wrong"}
    assert client.post("/accounts/login/", wrong).status_code == 200
    refused = client.get("/s/guess/")
    assert refused["Retry-After"]
    assert "links that do not work" in refused.content.decode()
    assert "password" not in refused.content.decode()
    root = client_of(people_and_turns.person("root", is_staff=True, is_superuser=True))
    listed = root.get("/admin/conversations/failedlogins/").content.decode()
    assert "links to chats" in listed


def test_guesses_of_who_is_logged_in_are_no_count(eve: Client) -> None:
    for at in range(40):
        assert eve.get(f"/s/guess{at}/").status_code == 404
    assert not FailedLogIns.objects.exists()
