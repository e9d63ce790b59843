"""The library in the browser: lists, names, the trash; with htmx and without."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from conversations.accounts.people import save_preferences
from conversations.library import conversations, sidebar
from conversations.log.search_index import index_title
from conversations.models import Conversation, Erasure, Turn, User
from tests.support import people_and_turns, stored_turns
from tests.web.pages import client_of, html_of

pytestmark = pytest.mark.django_db


def talk(owner: User, title: str = "Talk", days: float = 0, **values: Any) -> Conversation:
    """Create a conversation that is `days` days old."""
    row = Conversation.objects.create(owner=owner, title=title, model=stored_turns.MODEL)
    at = timezone.now() - timedelta(days=days)
    Conversation.objects.filter(pk=row.pk).update(updated_at=at, **values)
    index_title(conversation=row)
    row.refresh_from_db()
    return row


def htmx(path: str = "") -> dict[str, Any]:
    return {"HTTP_HX_REQUEST": "true", "HTTP_HX_CURRENT_URL": f"http://testserver{path}"}


def queries(client: Client, path: str) -> int:
    client.get(path)
    with CaptureQueriesContext(connection) as found:
        assert client.get(path).status_code == 200
    return len(found)


def titles(html: str) -> list[str]:
    return re.findall(r'class="row-title">([^<]*)<', html)


def test_the_list_goes_by_date_pinned_first_archived_apart() -> None:
    user = people_and_turns.person()
    now = timezone.now()
    for days in (0, 1, 3, 10, 50, 400):
        talk(user, f"{days} days", days)
    talk(user, "kept", 300, pinned_at=now)
    talk(user, "put away", 0, archived_at=now)
    talk(user, "thrown away", 0, deleted_at=now, erase_at=now + timedelta(days=1))
    shown = sidebar.read_sidebar(user)
    names = [name for name, _ in shown.groups]
    assert names[:4] == ["Today", "Yesterday", "Previous 7 days", "Previous 30 days"]
    assert names[4:] == [f"{now - timedelta(days=days):%B %Y}" for days in (50, 400)]
    listed = [row.title for _, rows in shown.groups for row in rows]
    assert listed == [f"{each} days" for each in (0, 1, 3, 10, 50, 400)]
    assert [row.title for row in shown.starred] == ["kept"]
    archived = sidebar.read_sidebar(user, archived=True)
    assert [row.title for _, rows in archived.groups for row in rows] == ["put away"]


def test_pages_follow_each_other_without_a_gap_or_a_second_heading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sidebar, "PAGE", 5)
    user = people_and_turns.person()
    for at in range(12):
        talk(user, f"t{at:02}", at / 1000 if at < 8 else 60 + at / 1000)
    client = client_of(user)
    page = client.get("/c/list/").content.decode().partition('class="rows wide"')[2]
    seen = titles(page)
    while match := re.search(r'hx-get="(/c/list/[^"]+)"', page):
        page = client.get(match[1].replace("&amp;", "&"), **htmx("/c/list/")).content.decode()
        assert "<html" not in page
        assert "<h2>Today</h2>" not in page
        seen += titles(page)
    assert seen == [f"t{at:02}" for at in range(12)]
    later = client.get("/c/list/?after=1-1")
    assert b"<html" in later.content
    for odd in ("", "x", "1", "-", "9" * 40, "1-", "0-0", "²-1", "%00"):
        assert client.get(f"/c/list/?after={odd}").status_code == 200


def test_lists_cost_the_same_queries_however_much_there_is() -> None:
    few, many = people_and_turns.person("few"), people_and_turns.person("many")
    for user, count in ((few, 2), (many, 60)):
        for at in range(count):
            now = timezone.now()
            gone = {"deleted_at": now, "erase_at": now + timedelta(days=1)} if at % 3 else {}
            talk(user, f"walnut {at}", **gone)
    for path in ("/c/list/", "/c/list/?archived=1", "/trash/", "/search/?q=walnut",
                 "/settings/data/"):  # fmt: skip
        counts = [queries(client_of(user), path) for user in (few, many)]
        assert counts[0] == counts[1] <= 9, path


def test_a_new_name_is_stored_shown_and_found() -> None:
    played = stored_turns.played(title="Old name")
    client, path = client_of(played.user), f"/c/{played.conversation.public_id}"
    before = Conversation.objects.get().updated_at
    answer = client.post(f"{path}/menu/rename/", {"title": "  New\n name "})
    assert answer["Location"] == f"{path}/menu/"
    conversation = Conversation.objects.get()
    assert (conversation.title, conversation.updated_at) == ("New name", before)
    page = client.get(f"{path}/menu/")
    assert b"Renamed." in page.content
    assert "New name" in client.get("/search/?q=new").content.decode().replace(
        "<mark>", ""
    ).replace("</mark>", "")


@pytest.mark.parametrize("title", ["", " ", "x" * 201, "\n"])
def test_a_name_that_is_none_is_refused_with_its_reason(title: str) -> None:
    conversation = talk(people_and_turns.person(), "Old")
    client, path = client_of(conversation.owner), f"/c/{conversation.public_id}/menu/rename/"
    answer = client.post(path, {"title": title})
    assert answer.status_code == 400
    assert b'role="alert"' in answer.content
    shown = client.post(path, {"title": title}, **htmx("/c/new/"))
    assert b'role="alert"' in shown.content
    assert b"<html" not in shown.content
    conversation.refresh_from_db()
    assert conversation.title == "Old"


HOSTILE = "<script>alert(1)</script>\" onfocus=alert(1) '{{ x }}\0\u202e"


def test_a_hostile_name_is_text_everywhere() -> None:
    conversation = talk(people_and_turns.person())
    client, path = client_of(conversation.owner), f"/c/{conversation.public_id}"
    client.post(f"{path}/menu/rename/", {"title": HOSTILE})
    for page in (f"{path}/", f"{path}/menu/", "/c/list/", "/search/?q=alert", f"{path}/export.md"):
        response = client.get(page)
        html = b"".join(response) if response.streaming else response.content
        if not response.streaming:
            assert b"<script>alert" not in html, page
    client.post(f"{path}/menu/delete/")
    assert b"<script>alert" not in client.get("/trash/").content


def test_no_more_chats_are_starred_than_the_list_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversations, "MOST_STARRED", 2)
    user = people_and_turns.person()
    now = timezone.now()
    talk(user, "gone", pinned_at=now, deleted_at=now, erase_at=now + timedelta(days=1))
    talk(people_and_turns.person("eve"), pinned_at=now)
    rows = [talk(user, name) for name in ("one", "two", "three")]
    client = client_of(user)

    def star(row: Conversation, on: str = "1") -> bool:
        path = f"/c/{row.public_id}/menu/star/"
        said = client.post(path, {"on": on}, **htmx("/list/")).content.decode()
        row.refresh_from_db()
        assert (row.pinned_at is None) == (on == "0" or "At most 2 chats can have a star" in said)
        return row.pinned_at is not None

    assert [star(row) for row in rows] == [True, True, False]
    # Who has one keeps it, and its place is free once it is taken.
    assert star(rows[0])
    assert not star(rows[0], "0")
    assert star(rows[2])


def test_whoever_has_more_stars_than_may_be_given_reaches_each_of_these_chats() -> None:
    user = people_and_turns.person()
    most, now = conversations.MOST_STARRED, timezone.now()
    rows = [talk(user, f"starred-{n}", pinned_at=now - timedelta(n)) for n in range(most + 3)]
    client = client_of(user)
    html = html_of(client, "/c/list/")
    assert [row.title for row in rows if f"/c/{row.public_id}/" not in html] == []
    # The oldest loses its star by the way that the list has, and stands among the others then.
    client.post(f"/c/{rows[-1].public_id}/menu/star/", {"on": "0"}, **htmx("/list/"))
    found = sidebar.read_sidebar(user)
    assert [row.title for _, some in found.groups for row in some] == [rows[-1].title]
    assert len(found.starred) == most + 2


def test_a_chat_of_the_archive_that_gets_a_star_is_at_the_top_of_the_list() -> None:
    user = people_and_turns.person()
    kept, starred = talk(user, "old"), talk(user, "old with a star", pinned_at=timezone.now())
    Conversation.objects.update(archived_at=timezone.now())
    client = client_of(user)
    # One that has got both before is in the archive.
    assert "old with a star" in html_of(client, "/c/list/?archived=1")
    client.post(f"/c/{kept.public_id}/menu/star/", {"on": "1"})
    kept.refresh_from_db()
    assert kept.archived_at is None
    assert [row.title for row in sidebar.read_sidebar(user).starred] == ["old"]
    archive = sidebar.read_sidebar(user, archived=True)
    assert [row.title for _, rows in archive.groups for row in rows] == [starred.title]


def test_a_chat_that_comes_back_without_room_for_its_star_is_in_the_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conversations, "MOST_STARRED", 1)
    user = people_and_turns.person()
    first, second = talk(user, "first", pinned_at=timezone.now()), talk(user, "second")
    conversations.delete_conversation(conversation=first)
    conversations.star_conversation(conversation=second, is_starred=True)
    conversations.restore_conversation(conversation=first)
    found = sidebar.read_sidebar(user)
    assert [row.title for row in found.starred] == ["second"]
    assert [row.title for _, rows in found.groups for row in rows] == ["first"]
    conversations.delete_conversation(conversation=second)
    conversations.restore_conversation(conversation=second)
    assert [row.title for row in sidebar.read_sidebar(user).starred] == ["second"]


@pytest.mark.parametrize("is_restored", [False, True])
def test_the_star_of_a_chat_that_is_asked_for_twice_at_once_stays(
    monkeypatch: pytest.MonkeyPatch, *, is_restored: bool
) -> None:
    monkeypatch.setattr(conversations, "MOST_STARRED", 1)
    row = talk(people_and_turns.person(), pinned_at=timezone.now() if is_restored else None)
    if is_restored:
        conversations.delete_conversation(conversation=row)
    # Both requests have read the row before one of them changes it.
    for same in [Conversation.objects.get(pk=row.pk) for _ in range(2)]:
        if is_restored:
            conversations.restore_conversation(conversation=same)
        else:
            conversations.star_conversation(conversation=same, is_starred=True)
    row.refresh_from_db()
    assert row.pinned_at is not None


def test_starring_and_archiving_with_htmx_gives_the_list_back() -> None:
    user = people_and_turns.person()
    first, second = talk(user, "first", 3), talk(user, "second")
    client, here = client_of(user), f"/c/{second.public_id}/"
    answer = client.post(f"/c/{first.public_id}/menu/star/", {"on": "1"}, **htmx(here))
    html = answer.content.decode()
    assert json.loads(answer["HX-Trigger"]) == {"kept": {}}
    assert html.index("Starred") < html.index("first") < html.index("second")
    assert 'aria-current="page"' in html
    assert 'id="notice" hx-swap-oob="innerHTML"' in html
    client.post(f"/c/{first.public_id}/menu/star/", {"on": "0"}, **htmx(here))
    first.refresh_from_db()
    assert first.pinned_at is None
    answer = client.post(f"/c/{first.public_id}/menu/archive/", {"on": "1"}, **htmx(here))
    assert titles(answer.content.decode()) == ["second"]
    client.post(f"/c/{first.public_id}/menu/archive/", {"on": "0"})
    first.refresh_from_db()
    assert first.archived_at is None


def test_what_is_deleted_is_gone_at_once_and_undo_brings_it_back() -> None:
    played = stored_turns.played(title="A walnut")
    client, path = client_of(played.user), f"/c/{played.conversation.public_id}"
    answer = client.post(f"{path}/menu/delete/")
    assert answer["Location"] == "/c/list/"
    page = client.get("/c/list/").content.decode()
    assert "was deleted" in page
    undo = re.search(r'action="(/trash/[^"]+/back/)"', page)
    assert undo is not None
    for gone in ("/", "/menu/", "/export.md", "/tools/toolu_1/", "/settings/"):
        assert client.get(path + gone).status_code == 404, gone
    for post in ("/send/", "/menu/rename/", "/menu/delete/", "/stop/", "/retry/1/"):
        assert client.post(path + post, {"text": "x", "title": "x"}).status_code == 404, post
    assert b"A walnut" not in client.get("/c/new/").content
    assert b"Nothing was found" in client.get("/search/?q=walnut&archived=1").content
    for _ in range(2):  # Another page may still offer it.
        assert client.post(undo[1])["Location"] == f"{path}/"
    assert client.get(f"{path}/").status_code == 200
    assert b"Title" in client.get("/search/?q=walnut").content


def test_deleting_the_open_chat_with_htmx_opens_another_page() -> None:
    user = people_and_turns.person()
    conversation, other = talk(user), talk(user)
    client, path = client_of(user), f"/c/{conversation.public_id}/"
    answer = client.post(f"{path}menu/delete/", **htmx(path))
    assert answer["HX-Redirect"] == "/c/new/"
    assert b"was deleted" in client.get("/c/new/").content
    answer = client.post(f"/c/{other.public_id}/menu/delete/", **htmx("/c/list/"))
    assert answer["HX-Refresh"] == "true"


def test_the_trash_of_another_is_not_reached() -> None:
    now = timezone.now()
    conversation = talk(people_and_turns.person(), deleted_at=now, erase_at=now + timedelta(days=1))
    eve = client_of(people_and_turns.person("eve", is_staff=True, is_superuser=True))
    before = people_and_turns.everything()
    for what in ("back", "erase"):
        theirs = eve.post(f"/trash/{conversation.public_id}/{what}/")
        nobodys = eve.post(f"/trash/{uuid4()}/{what}/")
        assert (theirs.status_code, theirs.content) == (404, nobodys.content)
    eve.post("/trash/empty/")
    assert people_and_turns.everything() == before


def test_the_trash_is_erased_one_by_one_or_whole() -> None:
    user = people_and_turns.person()
    for name in "abc":
        row = talk(user, name)
        client_of(user).post(f"/c/{row.public_id}/menu/delete/")
    client, first = client_of(user), Conversation.objects.get(title="a")
    assert client.post(f"/trash/{first.public_id}/erase/")["Location"] == "/trash/"
    assert set(Conversation.objects.values_list("title", flat=True)) == {"b", "c"}
    client.post("/trash/empty/")
    assert not Conversation.objects.exists()
    assert Erasure.objects.count() == 3
    assert b"Nothing is in the trash." in client.get("/trash/").content


def test_all_data_goes_only_when_the_name_is_typed(settings: Any, tmp_path: Any) -> None:
    settings.DATA_DIR = tmp_path
    played, other = stored_turns.played(), stored_turns.played("bob")
    client = client_of(played.user)
    from conversations.runtime.adapters import workspace_for

    workspace_for(played.user.pk).write("notes/a.txt", b"secret")
    own = {"instructions": "I have hay fever.", "theme": "dark"}
    save_preferences(user_id=played.user.pk, changes=own)
    for name in ("", "bob", "ADA"):
        assert client.post("/settings/data/delete/", {"name": name}).status_code == 400
    assert Conversation.objects.count() == 2
    assert client.post("/settings/data/delete/", {"name": "ada"})["Location"] == "/settings/data/"
    assert set(Conversation.objects.all()) == {other.conversation}
    assert workspace_for(played.user.pk).entries() == []
    assert not list(tmp_path.rglob("a.txt"))
    played.user.refresh_from_db()
    assert played.user.preferences == {"theme": "dark"}
    assert b"Your data was erased." in client.get("/settings/data/").content


def test_a_link_to_a_message_shows_its_page_with_ways_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from conversations.transcript import transcript

    monkeypatch.setattr(transcript, "PAGE", 4)
    lease = people_and_turns.started_turn(text="Question 1")
    people_and_turns.answered(lease)
    for at in range(2, 13):
        lease = people_and_turns.next_turn(
            people_and_turns.conversation_of(lease), f"Question {at}"
        )
        people_and_turns.answered(lease)
    conversation = people_and_turns.conversation_of(lease)
    client, path = client_of(conversation.owner), f"/c/{conversation.public_id}/"
    seq = Turn.objects.get(conversation=conversation, number=6).messages.get(kind="answer").seq
    html = client.get(f"{path}?m={seq}").content.decode()
    assert re.findall(r'id="turn-(\d+)"', html) == ["4", "5", "6", "7"]
    assert f'id="m-{seq}"' in html
    assert f"{path}?before=4" in html
    assert f"{path}?after=7&amp;until=12" in html
    assert 'ws-connect="/ws/c/' in html
    assert 'data-after="12"' in html
    later = client.get(f"{path}?after=7", **htmx(path)).content.decode()
    assert re.findall(r'id="turn-(\d+)"', later) == ["8", "9", "10", "11"]
    last = client.get(f"{path}?after=11", **htmx(path)).content.decode()
    assert re.findall(r'id="turn-(\d+)"', last) == ["12"]
    assert "?after=" not in last
    for odd in ("0", "999999", "x", "-1", "9" * 30):
        assert 'id="turn-12"' in client.get(f"{path}?m={odd}").content.decode()
    found = client.get("/search/?q=%22question+6%22").content.decode()
    prompt = Turn.objects.get(conversation=conversation, number=6).messages.get(kind="prompt").seq
    assert f'href="{path}?m={prompt}#m-{prompt}"' in found


def test_search_without_script_is_a_page_and_with_htmx_a_part() -> None:
    played = stored_turns.played(title="<b>walnut</b> & co")
    client = client_of(played.user)
    page = client.get("/search/?q=walnut").content.decode()
    assert "<html" in page
    assert "&lt;b&gt;<mark>walnut</mark>&lt;/b&gt; &amp; co" in page
    part = client.get("/search/?q=walnut", **htmx("/search/")).content.decode()
    assert "<html" not in part
    assert "<mark>walnut</mark>" in part
    none = client.get("/search/?q=<script>zzz</script>").content.decode()
    assert "“&lt;script&gt;zzz&lt;/script&gt;”" in none
    assert "<script>zzz" not in none
    for odd in ("%00", "%ff", '"' * 50, "%", "x" * 4_000, "*", "'", "\\", "a&b|!", "%ed%a0%80"):
        assert client.get(f"/search/?q={odd}").status_code == 200, odd


def test_staff_read_of_an_erasure_and_change_nothing() -> None:
    conversation = talk(
        people_and_turns.person(), "secret", deleted_at=timezone.now(), erase_at=timezone.now()
    )
    client_of(conversation.owner).post("/trash/empty/")
    erasure = Erasure.objects.get()
    client = client_of(people_and_turns.person("root", is_staff=True, is_superuser=True))
    base = "/admin/conversations/erasure/"
    assert str(conversation.public_id).encode() in client.get(base).content
    page = client.get(f"{base}{erasure.pk}/change/")
    assert page.status_code == 200
    assert b"secret" not in page.content
    for path in (f"{base}add/", f"{base}{erasure.pk}/delete/"):
        assert client.get(path).status_code == 403
