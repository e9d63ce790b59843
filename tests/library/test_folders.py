"""Folders: their names, their limits, and the one place of each conversation in the list."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from conversations.library import folders, sidebar
from conversations.library.conversations import (
    LibraryError,
    archive_conversation,
    delete_conversation,
    restore_conversation,
    star_conversation,
)
from conversations.library.search import search_messages
from conversations.log.legal_holds import place_hold
from conversations.log.search_index import index_title
from conversations.models import Conversation, Folder, User
from conversations.transcript.shapes import FolderRow
from conversations.turns import turns
from conversations.turns.forks import fork_conversation
from tests.support import people_and_turns, stored_turns

pytestmark = pytest.mark.django_db


def talk(owner: User, title: str = "Talk", days: float = 0, **values: Any) -> Conversation:
    """Create a conversation that is `days` days old."""
    row = Conversation.objects.create(owner=owner, title=title, model=stored_turns.MODEL, **values)
    at = timezone.now() - timedelta(days=days)
    Conversation.objects.filter(pk=row.pk).update(updated_at=at)
    row.refresh_from_db()
    return row


def add(owner: User, name: str = "Work") -> Folder:
    return folders.add_folder(owner_id=owner.pk, name=name)


def shown(owner: User) -> dict[str, list[str]]:
    """Return the titles of the list by their places."""
    found = sidebar.read_sidebar(owner)
    by_date = [row.title for _, rows in found.groups for row in rows]
    places = {"starred": [row.title for row in found.starred], "by date": by_date}
    return places | {one.name: [row.title for row in one.rows] for one in found.folders}


def test_a_name_is_one_line_and_taken_without_regard_to_case() -> None:
    ada, eve = people_and_turns.person(), people_and_turns.person("eve")
    assert add(ada, "  Straße\n des  Übels ").name == "Straße des Übels"
    for same in ("strasse DES übels", "STRASSE des U\u0308bels"):
        with pytest.raises(LibraryError) as refused:
            add(ada, same)
        assert refused.value.code == "taken"
    assert add(eve, "straße des übels").owner == eve
    for name, code in (("", "empty"), (" \n ", "empty"), ("x" * 61, "too_long")):
        with pytest.raises(LibraryError) as refused:
            add(ada, name)
        assert refused.value.code == code
    assert add(ada, "ﬃ" * 60).key == "ffi" * 60
    assert add(ada, "a\0b\ud800").name == "a\ufffdb\ufffd"


def test_folders_stand_as_in_a_dictionary() -> None:
    ada = people_and_turns.person()
    for name in ("Zoo", "Ezra", "école", "Äpfel", "Apulien", "ecole"):
        add(ada, name)
    found = [row.name for row in folders.list_folders(ada)]
    assert found == ["Äpfel", "Apulien", "ecole", "école", "Ezra", "Zoo"]


def test_a_folder_is_renamed_to_what_is_free() -> None:
    ada = people_and_turns.person()
    work, home = add(ada, "Work"), add(ada, "Home")
    folders.rename_folder(folder=work, name="WORK")
    work.refresh_from_db()
    assert (work.name, work.key) == ("WORK", "work")
    with pytest.raises(LibraryError):
        folders.rename_folder(folder=work, name="hOME")
    folders.delete_folder(folder=home)
    folders.rename_folder(folder=work, name="hOME")
    with pytest.raises(Folder.DoesNotExist):
        folders.rename_folder(folder=home, name="New")


def test_the_database_refuses_a_second_folder_of_a_name_and_one_without() -> None:
    ada = people_and_turns.person()
    add(ada, "Work")
    for key in ("work", ""):
        with pytest.raises(IntegrityError), transaction.atomic():
            Folder.objects.create(owner=ada, name="x", key=key)


def test_a_temporary_chat_is_in_no_folder() -> None:
    ada = people_and_turns.person()
    work, soon = add(ada), timezone.now() + timedelta(hours=1)
    chat = talk(ada, erase_at=soon)
    with pytest.raises(LibraryError) as refused:
        folders.move_conversation(conversation=chat, folder=work)
    assert refused.value.code == "temporary"
    with pytest.raises(IntegrityError), transaction.atomic():
        Conversation.objects.filter(pk=chat.pk).update(folder=work)
    begun = start(ada, folder=work.public_id, is_temporary=True)
    assert begun.is_temporary
    assert begun.folder is None


def start(owner: User, **values: Any) -> Conversation:
    turn = turns.start_conversation(
        owner_id=owner.pk, model=stored_turns.MODEL, text="Hello", client_id=uuid4(), **values
    )
    return Conversation.objects.get(pk=turn.conversation_id)


def test_a_chat_begins_in_a_folder_of_its_owner_and_of_nobody_else() -> None:
    ada, eve = people_and_turns.person(), people_and_turns.person("eve")
    work, theirs = add(ada), add(eve, "Theirs")
    assert start(ada, folder=work.public_id).folder == work
    assert start(ada, folder=theirs.public_id).folder is None
    assert start(ada, folder=uuid4()).folder is None
    with pytest.raises(Folder.DoesNotExist):
        folders.move_conversation(conversation=talk(ada), folder=theirs)
    assert not theirs.conversations.exists()


def test_there_are_only_so_many_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "MOST_FOLDERS", 2)
    ada = people_and_turns.person()
    add(ada, "a"), add(ada, "b")
    with pytest.raises(LibraryError) as refused:
        add(ada, "c")
    assert "2 folders" in refused.value.text
    add(people_and_turns.person("eve"), "c")
    assert folders.find_or_add_folder(owner_id=ada.pk, name="c") is None
    found = folders.find_or_add_folder(owner_id=ada.pk, name=" B ")
    assert found is not None
    assert found.name == "b"


def test_each_chat_stands_in_one_place_of_the_list_and_is_found_everywhere() -> None:
    ada = people_and_turns.person()
    work, home = add(ada, "work"), add(ada, "Äpfel")
    add(ada, "Zoo")
    for days, title in enumerate(("walnut a", "walnut b", "walnut c")):
        folders.move_conversation(conversation=talk(ada, title, days), folder=work)
    at_home, by_date = talk(ada, "walnut d"), talk(ada, "walnut e")
    folders.move_conversation(conversation=at_home, folder=home)
    star_conversation(conversation=at_home, is_starred=True)
    assert shown(ada) == {
        "starred": ["walnut d"], "by date": ["walnut e"], "Äpfel": [],
        "work": ["walnut a", "walnut b", "walnut c"], "Zoo": [],
    }  # fmt: skip
    assert [row.name for row in sidebar.read_sidebar(ada).folders] == ["Äpfel", "work", "Zoo"]
    page = sidebar.read_folder(ada, home)
    assert [row.title for _, rows in page.groups for row in rows] == ["walnut d"]
    for row in Conversation.objects.all():
        index_title(conversation=row)
    found = search_messages(ada, "walnut")
    assert {"".join(piece.text for piece in row.title): row.folder for row in found.rows} == {
        "walnut a": "work", "walnut b": "work", "walnut c": "work", "walnut d": "Äpfel",
        "walnut e": "",
    }  # fmt: skip
    folders.move_conversation(conversation=by_date, folder=work)
    folders.move_conversation(conversation=at_home, folder=None)
    star_conversation(conversation=at_home, is_starred=False)
    assert shown(ada)["by date"] == ["walnut d"]
    assert shown(ada)["work"] == ["walnut e", "walnut a", "walnut b", "walnut c"]


def test_moving_does_not_change_the_order_of_the_list() -> None:
    ada = people_and_turns.person()
    chat = talk(ada, days=3)
    folders.move_conversation(conversation=chat, folder=add(ada))
    assert Conversation.objects.get().updated_at == chat.updated_at


def test_a_chat_comes_back_from_archive_and_trash_into_its_folder() -> None:
    ada = people_and_turns.person()
    work, chat = add(ada), talk(ada, "a")
    folders.move_conversation(conversation=chat, folder=work)
    archive_conversation(conversation=chat, is_archived=True)
    assert shown(ada)["Work"] == []
    archived = sidebar.read_sidebar(ada, archived=True)
    assert [row.title for _, rows in archived.groups for row in rows] == ["a"]
    archive_conversation(conversation=chat, is_archived=False)
    delete_conversation(conversation=chat)
    assert shown(ada)["Work"] == []
    assert folders.count_returning(work) == 0
    restore_conversation(conversation=chat)
    assert shown(ada)["Work"] == ["a"]


def test_a_deleted_folder_leaves_its_chats_wherever_they_are() -> None:
    ada = people_and_turns.person()
    work = add(ada)
    listed, archived, trashed = (talk(ada, name, folder=work) for name in "abc")
    archive_conversation(conversation=archived, is_archived=True)
    delete_conversation(conversation=trashed)
    assert folders.count_returning(work) == 2
    folders.delete_folder(folder=work)
    assert list(Conversation.objects.values_list("folder", flat=True).distinct()) == [None]
    assert shown(ada) == {"starred": [], "by date": ["a"]}
    restore_conversation(conversation=trashed)
    assert shown(ada)["by date"] == ["c", "a"]
    assert listed.folder_id == work.pk


def test_folders_of_who_is_held_are_not_deleted() -> None:
    ada, root = people_and_turns.person(), people_and_turns.person("root", is_superuser=True)
    work = add(ada)
    place_hold(owner_id=ada.pk, reason="a case", actor_id=root.pk)
    with pytest.raises(LibraryError) as refused:
        folders.delete_folder(folder=work)
    assert refused.value.code == "held"
    folders.delete_folders(owner_id=ada.pk)
    assert Folder.objects.get() == work


def test_a_fork_stays_in_the_folder_of_its_source_as_that_is_by_then() -> None:
    played = stored_turns.played()
    turn = played.conversation.turns.get()
    assert fork_conversation(turn=turn).folder is None
    work = add(played.user)
    folders.move_conversation(conversation=played.conversation, folder=work)
    copy = fork_conversation(turn=turn)
    copy.refresh_from_db()
    assert copy.folder == work
    folders.delete_folder(folder=work)
    assert fork_conversation(turn=turn).folder is None


def find(owner: User, name: str) -> FolderRow:
    (found,) = (row for row in sidebar.read_sidebar(owner).folders if row.name == name)
    return found


def test_a_folder_stays_open_or_closed_and_opens_when_a_chat_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sidebar, "MOST_OPEN", 2)
    ada = people_and_turns.person()
    work, chat = add(ada), talk(ada, "a")
    folders.open_folder(folder=work, is_open=False)
    assert not find(ada, "Work").is_open
    folders.move_conversation(conversation=chat, folder=work)
    assert find(ada, "Work").is_open
    folders.open_folder(folder=work, is_open=False)
    assert find(ada, "Work").rows == ()
    chat.refresh_from_db()
    assert [row.is_current for row in sidebar.read_sidebar(ada, chat).folders] == [True]
    for name in "abc":
        add(ada, name)
    assert [row.name for row in sidebar.read_sidebar(ada).folders if row.is_open] == ["b", "c"]


def test_an_open_folder_shows_the_newest_and_its_page_has_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sidebar, "IN_FOLDER", 3)
    monkeypatch.setattr(sidebar, "PAGE", 4)
    ada = people_and_turns.person()
    work, small = add(ada), add(ada, "Small")
    names = [f"t{number:02}" for number in range(10)]
    for days, name in enumerate(names):
        talk(ada, name, days, folder=work)
    for days in range(3):
        talk(ada, "s", days, folder=small)
    assert [row.title for row in find(ada, "Work").rows] == names[:3]
    assert find(ada, "Work").has_more
    assert not find(ada, "Small").has_more
    seen, after = [], ""
    while True:
        page = sidebar.read_folder(ada, work, after=after)
        seen += [row.title for _, rows in page.groups for row in rows]
        after = page.after
        if not after:
            break
    assert seen == names


@pytest.mark.parametrize(
    ("at", "kept", "has_more"),
    [(0, 3, False), (0, 4, True), (3, 4, False), (3, 5, True), (4, 5, True), (9, 10, True)],
)
def test_an_open_folder_shows_the_chat_of_the_page_behind_the_newest(
    at: int, kept: int, has_more: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sidebar, "IN_FOLDER", 3)
    ada = people_and_turns.person()
    work, small = add(ada), add(ada, "Small")
    chats = [talk(ada, f"t{days}", days, folder=work) for days in range(kept)]
    talk(ada, "s", folder=small)
    with CaptureQueriesContext(connection) as found:
        rows = sidebar.read_sidebar(ada, chats[at]).folders
    assert len(found) == 4
    assert [row.title for row in rows[0].rows] == ["s"]
    titles = [row.title for row in chats[:3]] + [chats[at].title] * (at >= 3)
    assert [row.title for row in rows[1].rows] == titles
    assert [row.title for row in rows[1].rows if row.is_current] == [chats[at].title]
    assert rows[1].has_more == has_more
    assert sidebar.read_folder_row(ada, work, chats[at]).rows == rows[1].rows


def test_an_open_folder_shows_a_chat_that_stands_elsewhere_not_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sidebar, "IN_FOLDER", 1)
    ada, eve = people_and_turns.person(), people_and_turns.person("eve")
    work = add(ada)
    now = timezone.now()
    talk(ada, "newest", folder=work)
    away = [talk(ada, "x", 1, folder=work, **{name: now}) for name in
            ("pinned_at", "archived_at", "deleted_at")]  # fmt: skip
    for chat in (*away, talk(ada, "y", 2), talk(eve, "z", 2), Conversation(owner=ada)):
        (row,) = sidebar.read_sidebar(ada, chat).folders
        assert [one.title for one in row.rows] == ["newest"]
        assert not row.has_more


def test_the_list_costs_four_statements_with_100_folders_that_are_open() -> None:
    ada = people_and_turns.person()
    folders_of = [add(ada, f"Folder {number}") for number in range(folders.MOST_FOLDERS)]
    Conversation.objects.bulk_create(
        Conversation(owner=ada, title=f"Talk {number}", model="m", folder=folder)
        for folder in folders_of
        for number in range(sidebar.IN_FOLDER + 2)
    )
    with CaptureQueriesContext(connection) as found:
        listed = sidebar.read_sidebar(ada)
    assert len(found) == 4
    assert len(listed.folders) == 100
    opened = [row for row in listed.folders if row.is_open]
    assert [len(row.rows) for row in opened] == [sidebar.IN_FOLDER] * sidebar.MOST_OPEN
    Folder.objects.update(opened_at=None)
    with CaptureQueriesContext(connection) as found:
        sidebar.read_sidebar(ada)
    assert len(found) == 3


@pytest.mark.only_database("postgres", "SQLite has one writer at a time")
@pytest.mark.django_db(transaction=True)
def test_nothing_comes_into_a_folder_while_it_is_deleted() -> None:
    ada = people_and_turns.person()
    work, chat = add(ada), talk(ada)

    def run(act: Callable[[], object]) -> object:
        try:
            return act()
        finally:
            connection.close()

    move = partial(folders.move_conversation, conversation=chat, folder=work)
    begin = partial(start, ada, folder=work.public_id)
    with ThreadPoolExecutor(2) as threads:
        with transaction.atomic():
            folders.delete_folder(folder=work)
            moved, begun = threads.submit(run, move), threads.submit(run, begin)
            wait([moved, begun], timeout=0.5)
            assert not moved.done()
            assert not begun.done()
        with pytest.raises(Folder.DoesNotExist):
            moved.result()
        begun.result()
    assert list(Conversation.objects.values_list("folder", flat=True)) == [None, None]
