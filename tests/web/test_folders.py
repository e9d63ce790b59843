"""Folders in the browser: the list, their pages and menus; with htmx and without."""

from __future__ import annotations

import json
import re
from uuid import UUID, uuid4

import pytest

from conversations.library import folders, sidebar
from conversations.library.access import load_owned_conversation
from conversations.log.legal_holds import place_hold
from conversations.models import Conversation, Folder, User
from tests.support import people_and_turns, stored_turns
from tests.web.pages import client_of
from tests.web.tags import elements
from tests.web.test_library import HOSTILE, htmx, queries, talk, titles

pytestmark = pytest.mark.django_db


def add(owner: User, name: str = "Work") -> Folder:
    return folders.add_folder(owner_id=owner.pk, name=name)


def address(folder: Folder, what: str = "") -> str:
    return f"/folders/{folder.public_id}/{what}"


def test_a_folder_is_made_renamed_and_deleted_without_script() -> None:
    ada = people_and_turns.person()
    client, chat = client_of(ada), talk(ada, "A talk")
    assert b"Make the folder" in client.get("/folders/new/").content
    made = client.post("/folders/new/", {"name": " Job  search "})
    folder = Folder.objects.get()
    assert (made["Location"], folder.name) == (address(folder), "Job search")
    page = client.get(address(folder)).content.decode()
    assert "The folder “Job search” was made." in page
    assert "No chats are in this folder." in page
    assert "no chats are in it" in page
    moved = client.post(f"/c/{chat.public_id}/menu/folder/", {"folder": folder.public_id})
    assert moved["Location"] == f"/c/{chat.public_id}/menu/"
    page = client.get(address(folder)).content.decode()
    assert "its 1 chat is kept, in no folder" in page
    assert titles(page.partition("<main")[2]) == ["A talk"]
    client.post(address(folder, "rename/"), {"name": "Jobs"})
    assert "<bdi>Jobs</bdi></h1>" in client.get(address(folder)).content.decode()
    assert client.post(address(folder, "delete/"))["Location"] == "/c/list/"
    page = client.get("/c/list/").content.decode()
    assert "The folder “Jobs” was deleted; its chats are kept." in page
    assert titles(page.partition("<main")[2]) == ["A talk"]
    assert client.get(address(folder)).status_code == 404
    assert client.post(address(folder, "rename/"), {"name": "x"}).status_code == 404


@pytest.mark.parametrize("name", ["", "  ", "x" * 61, "wORK"])
def test_a_name_that_is_none_or_taken_is_refused_with_its_reason(name: str) -> None:
    ada = people_and_turns.person()
    add(ada)
    other, chat = add(ada, "Other"), talk(ada)
    client = client_of(ada)
    posts = ["/folders/new/", address(other, "rename/")]
    if name.strip():
        posts.append(f"/c/{chat.public_id}/menu/folder/")
    for post in posts:
        page = client.post(post, {"name": name})
        assert page.status_code == 400
        assert b'role="alert"' in page.content
        part = client.post(post, {"name": name}, **htmx("/c/new/"))
        assert b'role="alert"' in part.content
        assert b"<html" not in part.content
    assert sorted(Folder.objects.values_list("name", flat=True)) == ["Other", "Work"]
    chat.refresh_from_db()
    assert chat.folder is None


def test_a_hostile_name_is_text_everywhere() -> None:
    ada = people_and_turns.person()
    client, chat = client_of(ada), talk(ada)
    client.post(f"/c/{chat.public_id}/menu/folder/", {"name": HOSTILE[:60]})
    folder = Folder.objects.get()
    for page in (address(folder), f"/c/{chat.public_id}/menu/folder/", "/c/list/",
                 f"/c/new/?folder={folder.public_id}", "/search/?q=talk"):  # fmt: skip
        html = client.get(page).content.decode()
        assert "<script>alert" not in html
        assert "&lt;script&gt;alert" in html, page


def test_with_htmx_the_list_is_given_back_and_the_dialog_closes() -> None:
    ada = people_and_turns.person()
    first, second = talk(ada, "first", 3), talk(ada, "second")
    client, here = client_of(ada), f"/c/{second.public_id}/"
    dialog = client.get(f"/c/{first.public_id}/menu/folder/", **htmx(here)).content.decode()
    assert "<html" not in dialog
    answer = client.post(f"/c/{first.public_id}/menu/folder/", {"name": "Work"}, **htmx(here))
    html = answer.content.decode()
    assert json.loads(answer["HX-Trigger"]) == {"kept": {}}
    assert html.index("Work") < html.index(">first<") < html.index(">second<")
    folder = Folder.objects.get()
    html = client.get(address(folder), **htmx(here)).content.decode()
    assert "New chat in this folder" in html
    assert "<html" not in html
    renamed = client.post(address(folder, "rename/"), {"name": "Jobs"}, **htmx(here))
    assert ">Jobs</bdi>" in renamed.content.decode()
    elsewhere = client.post(address(folder, "rename/"), {"name": "J"}, **htmx("/c/list/"))
    assert elsewhere["HX-Refresh"] == "true"
    for path, then in ((address(folder), "/c/list/"), ("/c/new/", "/c/new/")):
        gone = client.post(address(folder, "delete/"), **htmx(path))
        assert gone["HX-Redirect"] == then
        Folder.objects.create(owner=ada, name="J", key="j", public_id=folder.public_id)
    deleted = client.post(address(folder, "delete/"), **htmx(here)).content.decode()
    assert titles(deleted) == ["second", "first"]


def test_a_folder_of_the_list_is_opened_and_closed_by_a_button() -> None:
    ada = people_and_turns.person()
    folder, chat = add(ada), talk(ada, "A talk")
    folders.move_conversation(conversation=chat, folder=folder)
    client, here = client_of(ada), f"/c/{chat.public_id}/"
    page = client.get(here).content.decode()
    (button,) = find_buttons(page)
    assert button["aria-expanded"] == "true"
    assert f'name="next" value="{here}"' in page
    closed = client.post(address(folder, "open/"), {"on": "0"}, **htmx(here)).content.decode()
    assert titles(closed) == ["Work"]
    assert find_buttons(closed)[0]["aria-expanded"] == "false"
    assert "The open chat is in it." in closed
    assert "A talk" not in client.get("/c/new/").content.decode()
    back = client.post(address(folder, "open/"), {"on": "1", "next": "/c/new/"})
    assert back["Location"] == "/c/new/"
    assert "A talk" in client.get("/c/new/").content.decode()
    away = client.post(address(folder, "open/"), {"on": "1", "next": "//evil.example/"})
    assert away["Location"] == address(folder)


def find_buttons(html: str) -> list[dict[str, str | None]]:
    found = [attrs for tag, attrs in elements(html) if tag == "button"]
    return [attrs for attrs in found if "aria-expanded" in attrs and "row" in str(attrs["class"])]


def test_a_chat_is_marked_and_stands_once_on_every_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sidebar, "IN_FOLDER", 2)
    ada = people_and_turns.person()
    folder = add(ada)
    chats = [talk(ada, f"t{days}", days, folder=folder) for days in range(3)]
    client = client_of(ada)
    for path in (f"/c/{chats[0].public_id}/menu/", address(folder), "/c/list/"):
        html = client.get(path).content.decode()
        ids = [attrs["id"] for _, attrs in elements(html) if "id" in attrs]
        assert len(ids) == len(set(ids)), path
        listed = html.partition("<main")[0]
        assert titles(listed) == ["Work", "t0", "t1"]
        assert "All chats of the folder" in listed
    found = elements(client.get(f"/c/{chats[0].public_id}/menu/").content.decode())
    rows = [attrs for _, attrs in found if attrs.get("class") == "row" and "href" in attrs]
    marked = [attrs["href"] for attrs in rows if "aria-current" in attrs]
    assert marked == [f"/c/{chats[0].public_id}/"]


def test_the_page_of_a_folder_is_paged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sidebar, "PAGE", 5)
    ada = people_and_turns.person()
    folder = add(ada)
    for at in range(12):
        talk(ada, f"t{at:02}", at, folder=folder)
    client = client_of(ada)
    page = client.get(address(folder)).content.decode().partition('class="rows wide"')[2]
    seen = titles(page)
    while match := re.search(r'hx-get="(/folders/[^"]+after=[^"]+)"', page):
        page = client.get(match[1].replace("&amp;", "&"), **htmx(address(folder))).content.decode()
        assert "<html" not in page
        assert "<h2" not in page
        seen += titles(page)
    assert seen == [f"t{at:02}" for at in range(12)]
    assert "Newest" in client.get(address(folder) + "?after=1-1").content.decode()


def test_a_new_chat_in_a_folder_says_so_and_comes_into_it() -> None:
    ada, eve = people_and_turns.person(), people_and_turns.person("eve")
    folder, theirs = add(ada), add(eve, "Theirs")
    client = client_of(ada)
    folders.open_folder(folder=folder, is_open=False)
    html = client.get(f"/c/new/?folder={folder.public_id}").content.decode()
    assert "This chat will be in the folder “<bdi>Work</bdi>”." in html
    assert f'name="folder" value="{folder.public_id}"' in html
    for odd in (theirs.public_id, uuid4(), "x", "%00"):
        assert client.get(f"/c/new/?folder={odd}").status_code == 404
    client.post("/c/start/", {"text": "Hello", "folder": folder.public_id})
    folder.refresh_from_db()
    assert (Conversation.objects.get().folder, folder.opened_at is None) == (folder, False)
    for odd in (theirs.public_id, uuid4()):
        client.post("/c/start/", {"text": "Hello", "folder": odd})
    assert list(theirs.conversations.all()) == []
    assert Conversation.objects.filter(owner=ada, folder=None).count() == 2
    assert client.post("/c/start/", {"text": "Hello", "folder": "x"}).status_code == 400


def test_a_refused_message_keeps_its_folder() -> None:
    ada = people_and_turns.person()
    folder, client = add(ada), client_of(ada)
    refused = client.post("/c/start/", {"text": "", "folder": folder.public_id})
    assert refused.status_code == 400
    assert f'name="folder" value="{folder.public_id}"' in refused.content.decode()
    folders.delete_folder(folder=folder)
    for gone in (folder.public_id, "x"):
        assert client.post("/c/start/", {"text": "", "folder": gone}).status_code == 400


def test_nobody_puts_a_chat_into_the_folder_of_another() -> None:
    ada, eve = people_and_turns.person(), people_and_turns.person("eve", is_superuser=True)
    theirs, chat = add(eve, "Theirs"), talk(ada)
    client, before = client_of(ada), people_and_turns.everything()
    for odd in (theirs.public_id, uuid4(), "x"):
        answer = client.post(f"/c/{chat.public_id}/menu/folder/", {"folder": odd})
        assert answer.status_code == 404
    for what in ("", "open/", "rename/", "delete/"):
        ask = client.post if what else client.get
        theirs_answer, nobodys = ask(address(theirs, what)), ask(f"/folders/{uuid4()}/{what}")
        assert theirs_answer.status_code == nobodys.status_code == 404
        assert theirs_answer.content == nobodys.content
    assert people_and_turns.everything() == before


def test_a_chat_that_is_erased_meanwhile_leaves_no_new_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ada = people_and_turns.person()
    chat, place = talk(ada), "conversations.web.library.folders.load_owned_conversation"

    def load_and_erase(user: User, public_id: UUID) -> Conversation:
        row = load_owned_conversation(user, public_id)
        Conversation.objects.filter(pk=row.pk).delete()
        return row

    monkeypatch.setattr(place, load_and_erase)
    answer = client_of(ada).post(f"/c/{chat.public_id}/menu/folder/", {"name": "New"})
    assert answer.status_code == 404
    assert not Folder.objects.exists()


def test_a_temporary_chat_has_no_folder_and_no_page_for_one() -> None:
    ada = people_and_turns.person()
    folder, client = add(ada), client_of(ada)
    client.post("/c/start/", {"text": "x", "is_temporary": "1", "folder": folder.public_id})
    chat = Conversation.objects.get()
    assert (chat.is_temporary, chat.folder) == (True, None)
    assert b"Move to a folder" not in client.get(f"/c/{chat.public_id}/menu/").content
    post = f"/c/{chat.public_id}/menu/folder/"
    assert client.get(post).status_code == 404
    assert client.post(post, {"name": "New"}).status_code == 404
    assert Folder.objects.get() == folder


def test_pages_cost_the_same_however_many_folders_and_chats_there_are() -> None:
    few, many = people_and_turns.person("few"), people_and_turns.person("many")
    for user, count in ((few, 2), (many, 60)):
        for number in range(count):
            folder = add(user, f"Folder {number}")
            Conversation.objects.bulk_create(
                Conversation(owner=user, title="walnut", model="m", folder=folder)
                for _ in range(2 if user is few else 12)
            )
    for path in ("/c/list/", "/c/new/", "/search/?q=walnut", "folder", "move"):
        counts = [cost(user, path) for user in (few, many)]
        assert counts[0] == counts[1], path
        assert path == "/c/new/" or counts[0] <= 10, (path, counts)


def cost(user: User, path: str) -> int:
    paths = {
        "folder": address(user.folders.latest("pk")),
        "move": f"/c/{user.conversations.latest('pk').public_id}/menu/folder/",
    }
    return queries(client_of(user), paths.get(path, path))


def test_all_data_includes_the_folders_unless_they_are_held() -> None:
    ada, eve = people_and_turns.person(), people_and_turns.person("eve")
    add(ada)
    kept = add(eve, "Kept")
    place_hold(owner_id=eve.pk, reason="a case", actor_id=ada.pk)
    for user in (ada, eve):
        client_of(user).post("/settings/data/delete/", {"name": user.username})
    assert Folder.objects.get() == kept
    refused = client_of(eve).post(address(kept, "delete/"))
    assert refused.status_code == 400
    assert b"legal hold" in refused.content


def test_staff_who_read_a_chat_are_not_shown_its_folder() -> None:
    played = stored_turns.played()
    folder = add(played.user, "Secret name")
    folders.move_conversation(conversation=played.conversation, folder=folder)
    root = client_of(people_and_turns.person("root", is_staff=True, is_superuser=True))
    pages = (
        f"/admin/conversations/conversation/{played.conversation.pk}/change/",
        "/admin/conversations/conversation/",
        f"/review/c/{played.conversation.public_id}/inspect/",
    )
    for page in pages:
        assert "Secret name" not in root.get(page, follow=True).content.decode()
    assert root.get("/admin/conversations/folder/").status_code == 404
