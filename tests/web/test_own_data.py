"""Export and erasure of one's own data in the browser: complete, and described correctly."""

from __future__ import annotations

import io
import zipfile
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.storage import storages

from conversations.library.conversations import delete_conversation
from conversations.library.erase import erase_due_conversations
from conversations.library.retention import apply_retention
from conversations.log.legal_holds import place_hold
from conversations.models import Conversation, RetentionRule, User, WorkspaceFile
from conversations.runtime.adapters import workspace_for
from conversations.turns import turns
from tests.support import people_and_turns, stored_turns
from tests.support.attached_files import PNG, kept, started
from tests.tools import samples
from tests.web.pages import client_of

pytestmark = pytest.mark.django_db


def archive_of(user: User) -> zipfile.ZipFile:
    response = client_of(user).get("/settings/data/export.zip")
    return zipfile.ZipFile(io.BytesIO(b"".join(response)))  # type: ignore[arg-type]


def test_every_file_of_an_archive_is_packed() -> None:
    user = stored_turns.played().user
    workspace_for(user.pk).write("a.txt", b"x" * 10_000)
    members = archive_of(user).infolist()
    assert {member.compress_type for member in members} == {zipfile.ZIP_DEFLATED}
    (file,) = (member for member in members if member.filename == "workspace/a.txt")
    assert file.compress_size < 1_000


def test_a_file_that_cannot_be_read_is_a_note_in_a_whole_archive() -> None:
    user = stored_turns.played().user
    workspace = workspace_for(user.pk)
    for name in ("a.txt", "b.txt", "c.txt"):
        workspace.write(name, b"content")
    storages["workspace"].delete(WorkspaceFile.objects.get(path="b.txt").object)
    archive = archive_of(user)
    assert archive.testzip() is None
    assert archive.read("workspace/a.txt") == archive.read("workspace/c.txt") == b"content"
    assert b"could not be read" in archive.read("workspace/b.txt")


def test_attached_files_are_in_an_archive_as_they_were_uploaded() -> None:
    user, data = people_and_turns.person(), samples.docx()
    sent = [kept(user, data, "a.docx"), kept(user, PNG, "b.png"), kept(user, data, "a.docx")]
    people_and_turns.answered(people_and_turns.claimed(started(user, *sent[:2])))
    kept(people_and_turns.person("bob"), PNG, "theirs.png")
    archive = archive_of(user)
    found = {name: archive.read(name) for name in archive.namelist() if "attached/" in name}
    assert found == {
        f"attached/{str(file.public_id)[:8]}-{file.name}": bytes_
        for file, bytes_ in zip(sent, (data, PNG, data), strict=True)
    }
    delete_conversation(conversation=Conversation.objects.get())
    assert sum("attached/" in name for name in archive_of(user).namelist()) == 1


def test_erasing_is_said_when_it_is_done_and_not_before() -> None:
    lease = people_and_turns.started_turn()
    conversation = people_and_turns.conversation_of(lease)
    client, path = client_of(conversation.owner), f"/trash/{conversation.public_id}/erase/"
    client.post(f"/c/{conversation.public_id}/menu/delete/")
    client.get("/trash/")
    client.post(path)
    page = client.get("/trash/").content.decode()
    assert "will be erased as soon as its answer has stopped" in page
    assert "was erased" not in page
    client.post("/trash/empty/")
    page = client.get("/trash/").content.decode()
    assert "0 chats were erased. What is still answering follows" in page
    client.post("/settings/data/delete/", {"name": conversation.owner.username})
    page = client.get("/settings/data/").content.decode()
    assert "Your data was erased; what is still answering follows" in page
    turns.finish_turn(lease=lease, finish=people_and_turns.Finish("cancelled", "stopped"))
    client.post(path)
    assert "was erased" in client.get("/trash/").content.decode()
    assert not Conversation.objects.exists()


def test_deleting_on_a_page_of_the_conversation_leads_to_one_that_is_there() -> None:
    played = stored_turns.played()
    client, path = client_of(played.user), f"/c/{played.conversation.public_id}/menu/"
    came = {"HTTP_HX_REQUEST": "true", "HTTP_HX_CURRENT_URL": f"http://testserver{path}"}
    answer = client.post(f"{path}delete/", **came)
    assert "HX-Refresh" not in answer
    assert client.get(answer["HX-Redirect"]).status_code == 200
    assert answer["HX-Redirect"] == "/c/list/"


@pytest.mark.parametrize("what", ["rename", "pin", "archive", "delete", "back"])
def test_what_is_erased_in_between_is_not_found(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from conversations.web.library import menu

    name = "load_deleted_conversation" if what == "back" else "load_owned_conversation"
    played = stored_turns.played()
    client, public_id = client_of(played.user), played.conversation.public_id
    looked_up = getattr(menu, name)
    if what == "back":
        client.post(f"/c/{public_id}/menu/delete/")

    def erased(*args: Any) -> Conversation:
        found: Conversation = looked_up(*args)
        Conversation.objects.update(deleted_at=found.created_at, erase_at=found.created_at)
        assert erase_due_conversations() == 1
        return found

    monkeypatch.setattr(menu, name, erased)
    place = f"/trash/{public_id}/back/" if what == "back" else f"/c/{public_id}/menu/{what}/"
    assert client.post(place, {"title": "New", "on": "1"}).status_code == 404


def test_the_rule_that_removed_a_chat_is_named_in_the_readers_language() -> None:
    conversation = stored_turns.played().conversation
    RetentionRule.objects.create(idle_days=30, file_days=7)
    apply_retention(now=conversation.updated_at + timedelta(days=31))
    client, german = client_of(conversation.owner), {"Accept-Language": "de"}
    shown = "seit 30 Tagen keine Nachricht oder eine Datei, die älter als 7 Tage ist"
    page = client.get("/trash/", headers=german).content.decode()
    assert f"{shown} (alle)" in page
    Conversation.objects.update(removed_by_rule="a file older than 7 days (Staff (EU))")
    page = client.get("/trash/", headers=german).content.decode()
    assert "eine Datei, die älter als 7 Tage ist (Staff (EU))" in page


def test_what_is_held_is_said_wherever_its_owner_tries_to_delete_it() -> None:
    kept, gone = stored_turns.played().conversation, stored_turns.played().conversation
    client, officer = client_of(kept.owner), User.objects.create(username="officer")
    client.post(f"/c/{kept.public_id}/menu/delete/")
    place_hold(actor_id=officer.pk, reason="Case 4711", public_id=kept.public_id)

    def says(path: str = "/trash/") -> str:
        return " ".join(client.get(path).content.decode().split())

    client.get("/trash/")
    client.post(f"/trash/{kept.public_id}/erase/")
    assert "can be neither deleted nor erased until the hold is released" in says()
    assert "under a legal hold: it stays until that is released" in says()
    client.post("/trash/empty/")
    page = says()
    assert "0 chats were erased. Under a legal hold, and kept: 1." in page
    assert "still answering" not in page
    client.post(f"/trash/{kept.public_id}/back/")
    client.post(f"/c/{kept.public_id}/menu/delete/")
    page = says(f"/c/{kept.public_id}/")
    assert "can be neither deleted nor erased until the hold is released" in page
    RetentionRule.objects.create(idle_days=30)
    page = says("/settings/data/")
    assert "1 chat of yours is under a legal hold" in page
    assert "Chats go to the trash 30 days after their last message" in page
    assert "4711" not in page
    client.post("/settings/data/delete/", {"name": kept.owner.username})
    assert "Your data was erased. Chats under a legal hold stay: 1." in says("/settings/data/")
    assert list(Conversation.objects.all()) == [kept] != [gone]
