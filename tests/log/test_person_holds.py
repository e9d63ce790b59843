"""A hold on a person keeps their files, workspace and mail accounts, too, by every way."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from conversations.accounts.people import save_preferences
from conversations.files.attachments import store_attachment, sweep_unsent
from conversations.files.workspace import (
    UserWorkspace,
    clear_workspace,
    delete_files,
    empty_file_trash,
    read_object,
    restore_files,
    sweep_workspaces,
)
from conversations.log.legal_holds import place_hold, release_hold
from conversations.models import Attachment, FileState, LegalHold, MailAccount, User, WorkspaceFile
from tests.support import people_and_turns
from tests.web.pages import client_of
from tools.framework.errors import QuotaError

pytestmark = pytest.mark.django_db
LATER = timezone.now() + timedelta(days=400)


@pytest.fixture
def ada(settings: Any, tmp_path: Any) -> User:
    settings.STORAGES = settings.STORAGES | {
        "workspace": {
            "BACKEND": "conversations.files.workspace.disk.GuardedStorage",
            "OPTIONS": {"location": str(tmp_path)},
        }
    }
    return people_and_turns.person("ada")


def hold(user: User) -> LegalHold:
    officer = people_and_turns.person("officer")
    return place_hold(actor_id=officer.pk, reason="Case 4711", owner_id=user.pk)


def contents() -> list[bytes]:
    return sorted(read_object(row) for row in WorkspaceFile.objects.exclude(state=FileState.GONE))


def text(client: Client, path: str) -> str:
    return " ".join(client.get(path).content.decode().split())


def test_a_held_workspace_keeps_every_content_that_it_had(ada: User, settings: Any) -> None:
    workspace, placed = UserWorkspace(ada.pk), hold(ada)
    workspace.write("a.txt", b"first")
    workspace.write("a.txt", b"second")
    workspace.write("b.txt", b"other")
    delete_files(owner_id=ada.pk, path="b.txt")
    assert empty_file_trash(owner_id=ada.pk) == 0
    clear_workspace(owner_id=ada.pk)
    assert sweep_workspaces(now=LATER) == 0
    assert contents() == [b"first", b"other", b"second"]
    batch = WorkspaceFile.objects.get(path="a.txt", state=FileState.TRASH).batch
    assert batch is not None
    assert restore_files(owner_id=ada.pk, batch=batch) == ["a (2).txt"]
    # Nothing is discarded for room: what does not fit beside the trash is refused.
    settings.AGENTWEB_WORKSPACE_BYTES = 20
    with pytest.raises(QuotaError, match="legal hold"):
        workspace.write("c.txt", b"too much")
    assert contents() == [b"first", b"other", b"second"]
    release_hold(hold_id=placed.pk, actor_id=placed.actor_id, reason="Closed")
    workspace.write("c.txt", b"too much")
    assert contents() == [b"first", b"second", b"too much"]
    clear_workspace(owner_id=ada.pk)
    assert not WorkspaceFile.objects.exists()


def test_files_that_wait_and_mail_accounts_of_who_is_held_stay(ada: User) -> None:
    client = client_of(ada)
    account = MailAccount.objects.create(
        owner=ada, name="Work", address="a@example.net", login="a", imap_host="mail",
        imap_port=993, used_at=timezone.now(),
    )  # fmt: skip
    waiting = store_attachment(owner_id=ada.pk, name="a.txt", data=b"a text")
    UserWorkspace(ada.pk).write("a.txt", b"first")
    delete_files(owner_id=ada.pk, path="a.txt")
    save_preferences(user_id=ada.pk, changes={"instructions": "Be brief."})
    placed = hold(ada)
    posts = {
        f"/settings/mail/{account.public_id}/remove/": "/settings/mail/",
        f"/files/{waiting.public_id}/remove/": "/files/attached/",
        "/files/own/empty/": "/files/",
    }
    for post, page in posts.items():
        assert client.post(post, {"page": "files"}).status_code == 302
        assert "You are under a legal hold" in text(client, page)
    client.post("/settings/data/delete/", {"name": "ada"})
    assert "What is under a legal hold stays: 0 chats, files" in text(client, "/settings/data/")
    assert "files, folders, prompts and mail accounts cannot be" in text(client, "/settings/data/")
    assert sweep_unsent(now=LATER) == 0
    assert (Attachment.objects.count(), MailAccount.objects.count()) == (1, 1)
    assert contents() == [b"first"]
    ada.refresh_from_db()
    assert ada.preferences == {"instructions": "Be brief."}
    release_hold(hold_id=placed.pk, actor_id=placed.actor_id, reason="Closed")
    client.post("/settings/data/delete/", {"name": "ada"})
    assert (Attachment.objects.count(), MailAccount.objects.count()) == (0, 0)
    assert contents() == []
