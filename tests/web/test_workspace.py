"""The page of a workspace: folders, upload, download, move, delete, restore."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from conversations.files.workspace import UserWorkspace
from conversations.models import FileState, User, WorkspaceFile
from tests.support import people_and_turns
from tests.tools import samples

pytestmark = pytest.mark.django_db


@pytest.fixture
def user(settings: Any) -> User:
    settings.STORAGES = settings.STORAGES | {
        "workspace": {"BACKEND": "django.core.files.storage.InMemoryStorage"}
    }
    settings.AGENTWEB_WORKSPACE_BYTES = 10_000
    settings.AGENTWEB_WORKSPACE_FILES = 20
    settings.AGENTWEB_WORKSPACE_FILE_BYTES = 5_000
    return people_and_turns.person()


@pytest.fixture
def workspace(user: User) -> UserWorkspace:
    return UserWorkspace(user.pk)


@pytest.fixture
def client(user: User) -> Client:
    found = Client()
    found.force_login(user)
    return found


def upload(client: Client, *files: tuple[str, bytes], **fields: str) -> Any:
    given = [SimpleUploadedFile(name, data) for name, data in files]
    return client.post("/files/", {"files": given, **fields}, follow=True)


def paths(workspace: UserWorkspace) -> list[str]:
    return [entry.path for entry in workspace.entries()]


def words(client: Client, path: str = "") -> str:
    return client.get("/files/", {"path": path} if path else {}).content.decode()


def test_an_empty_workspace_says_what_to_do(client: Client) -> None:
    page = words(client)
    assert "Nothing is here yet" in page
    assert "0 of 20 files" in page
    assert reverse("files") in page


def test_a_folder_shows_what_is_in_it(client: Client, workspace: UserWorkspace) -> None:
    for path in ("a.txt", "notes/b.md", "notes/old/c.md", "notes/old/d.md"):
        workspace.write(path, b"12345")
    page = words(client)
    assert all(each in page for each in (">a.txt<", ">notes<", "3 files", "4 of 20 files"))
    assert ">b.md<" not in page
    page = words(client, "notes")
    assert all(each in page for each in (">b.md<", ">old<", "2 files"))
    assert 'href="/files/?path=notes%2Fold"' in page
    assert 'aria-current="page">old</bdi>' in words(client, "notes/old")


def test_a_path_leads_to_its_file_and_a_lost_one_says_so(
    client: Client, workspace: UserWorkspace
) -> None:
    workspace.write("notes/b.md", b"x")
    file = WorkspaceFile.objects.get()
    answer = client.get("/files/", {"path": "./notes/b.md"})
    assert answer["Location"] == f"/files/own/{file.public_id}/"
    for path in ("gone.txt", "../x", "/etc/passwd", "notes/\u202ex"):
        answer = client.get("/files/", {"path": path})
        assert answer.status_code == 404
        assert 'role="alert"' in answer.content.decode()


@pytest.mark.parametrize(
    ("path", "to", "words"),
    [
        ("a.txt", "../b", "ist nicht erlaubt: &#x27;..&#x27; geht nicht"),
        ("a.txt", "a.txt", "kann nicht an denselben Ort"),
        ("gone.txt", "b.txt", "im Arbeitsbereich gibt es keine Datei"),
    ],
)
def test_a_refusal_is_in_the_language_of_the_person(
    path: str, to: str, words: str, client: Client, workspace: UserWorkspace
) -> None:
    workspace.write("a.txt", b"a")
    posted, asked = {"path": path, "to": to}, {"Accept-Language": "de"}
    answer = client.post("/files/own/move/", posted, headers=asked)
    assert answer.status_code in (400, 404)
    assert words.casefold() in answer.content.decode().casefold()


def test_several_files_are_added_to_a_folder(client: Client, workspace: UserWorkspace) -> None:
    workspace.write("notes/a.txt", b"old")
    answer = upload(client, ("a.txt", b"new"), ("b.txt", b"b"), folder="notes")
    assert answer.redirect_chain == [("/files/?path=notes", 302)]
    assert "2 files were added." in answer.content.decode()
    assert paths(workspace) == ["notes/a (2).txt", "notes/a.txt", "notes/b.txt"]
    upload(client, ("a.txt", b"newer"), folder="notes", replace="1")
    assert workspace.read("notes/a.txt") == b"newer"


def test_what_has_no_place_is_named_and_the_rest_is_added(
    client: Client, workspace: UserWorkspace
) -> None:
    answer = upload(client, ("big.bin", b"x" * 5_001), ("a.txt", b"a"), ("CON", b"x"))
    page = answer.content.decode()
    assert answer.status_code == 400
    assert "big.bin: A file may have at most 5,000 bytes" in page
    assert "is reserved" in page
    assert "1 file was added." in page
    assert paths(workspace) == ["a.txt"]
    full = upload(client, ("x", b"x" * 5_000), ("y", b"x" * 5_000)).content.decode()
    assert "y: The workspace is full: it would hold 10,001 of at most 10,000 bytes." in full
    assert client.post("/files/", {}).status_code == 400
    many = upload(client, *((f"{number}", b"") for number in range(51)))
    assert "At most 50 files" in many.content.decode()


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ('a".html', 'a".html'),
        ("a\u202egnp.html", "agnp.html"),
        ("../../etc/passwd", "passwd"),
        ("<img src=x onerror=alert(1)>.svg", "<img src=x onerror=alert(1)>.svg"),
    ],
)
def test_a_hostile_name_is_only_a_name(
    name: str, kept: str, client: Client, user: User, workspace: UserWorkspace
) -> None:
    from conversations.files.file_texts import clean_display_name

    workspace.write(clean_display_name(name, "application/file"), b"<script>alert(1)</script>")
    assert paths(workspace) == [kept]
    file = WorkspaceFile.objects.get()
    page = client.get(f"/files/own/{file.public_id}/").content.decode() + words(client)
    assert "<img src=x" not in page
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page
    answer = client.get(f"/files/own/{file.public_id}/download")
    assert answer.content == b"<script>alert(1)</script>"
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert answer["Cache-Control"] == "private, no-store"
    assert answer["Content-Disposition"].startswith("attachment; filename")
    assert "\n" not in answer["Content-Disposition"]


def test_a_name_of_a_header_cannot_come_in(client: Client, workspace: UserWorkspace) -> None:
    upload(client, ("a\r\nX-Evil: y.txt", b"x"))
    for file in WorkspaceFile.objects.all():
        answer = client.get(f"/files/own/{file.public_id}/download")
        assert "X-Evil" not in answer.headers


def test_a_preview_is_text_of_documents_too(client: Client, workspace: UserWorkspace) -> None:
    for path, data, shown in [
        ("a.csv", b"x;y\n", "x;y"),
        ("a.pdf", samples.pdf("Hello"), "[page 1 of 1]\nHello"),
        ("a.bin", b"\0\1", "is a binary file"),
        ("empty", b"", "The file is empty."),
    ]:
        workspace.write(path, data)
        file = WorkspaceFile.objects.get(path=path)
        assert shown in client.get(f"/files/own/{file.public_id}/").content.decode()


def test_files_and_folders_are_renamed_and_a_clash_is_said_beside_the_path(
    client: Client, workspace: UserWorkspace
) -> None:
    workspace.write("a.txt", b"a")
    workspace.write("b.txt", b"b")
    answer = client.post("/files/own/move/", {"path": "a.txt", "to": "n/c.txt"}, follow=True)
    assert "Moved to “n/c.txt”." in answer.content.decode()
    assert answer.redirect_chain[-1][0].startswith("/files/own/")
    answer = client.post("/files/own/move/", {"path": "b.txt", "to": "n/c.txt"})
    assert answer.status_code == 400
    assert 'id="move-error"' in answer.content.decode()
    assert 'value="n/c.txt"' in answer.content.decode()
    answer = client.post("/files/own/move/", {"path": "n", "to": "b.txt/x"})
    assert answer.status_code == 400
    answer = client.post("/files/own/move/", {"path": "n", "to": "m"}, follow=True)
    assert answer.redirect_chain == [("/files/?path=m", 302)]
    assert paths(workspace) == ["b.txt", "m/c.txt"]


def test_what_is_deleted_is_brought_back_from_the_notice_or_the_list(
    client: Client, workspace: UserWorkspace
) -> None:
    for path in ("a.txt", "n/b.txt", "n/c.txt"):
        workspace.write(path, b"x")
    page = client.post("/files/own/delete/", {"path": "n"}, follow=True).content.decode()
    batch = WorkspaceFile.objects.filter(state=FileState.TRASH).values_list("batch", flat=True)[0]
    undo = f'action="/files/own/back/{batch}/"'
    assert page.count(undo) == 2
    assert paths(workspace) == ["a.txt"]
    page = client.post(f"/files/own/back/{batch}/", follow=True).content.decode()
    assert "2 files are back." in page
    assert undo not in page
    assert paths(workspace) == ["a.txt", "n/b.txt", "n/c.txt"]
    assert client.post(f"/files/own/back/{batch}/").status_code == 404
    assert client.post("/files/own/delete/", {"path": "nothing"}).status_code == 404
    client.post("/files/own/delete/", {"path": "a.txt"})
    client.post("/files/own/empty/")
    assert not WorkspaceFile.objects.exclude(state=FileState.LIVE).exists()


def test_what_has_no_room_for_its_number_is_named_and_stays_in_the_trash(
    client: Client, workspace: UserWorkspace
) -> None:
    path = "/".join([*["d" * 203] * 5, "b.c"])
    workspace.write(path, b"old")
    client.post("/files/own/delete/", {"path": path})
    batch = WorkspaceFile.objects.get(state=FileState.TRASH).batch
    workspace.write(path, b"new")
    answer = client.post(f"/files/own/back/{batch}/")
    assert answer.status_code == 400
    assert "it is too long" in answer.content.decode()
    assert WorkspaceFile.objects.filter(state=FileState.TRASH, batch=batch).exists()


def test_nobody_reaches_the_files_of_another(client: Client, workspace: UserWorkspace) -> None:
    workspace.write("a.txt", b"secret")
    workspace.write("b.txt", b"secret")
    client.post("/files/own/delete/", {"path": "b.txt"})
    file = WorkspaceFile.objects.get(state=FileState.LIVE)
    batch = WorkspaceFile.objects.get(state=FileState.TRASH).batch
    for is_staff in (False, True):
        other = Client()
        other.force_login(
            people_and_turns.person(f"eve {is_staff}", is_staff=is_staff, is_superuser=is_staff)
        )
        for address in (f"/files/own/{file.public_id}/", f"/files/own/{file.public_id}/download"):
            assert other.get(address).status_code == 404
        assert other.post(f"/files/own/back/{batch}/").status_code == 404
        assert other.post("/files/own/delete/", {"path": "a.txt"}).status_code == 404
        assert other.post("/files/own/move/", {"path": "a.txt", "to": "c"}).status_code == 404
        assert b"a.txt" not in other.get("/files/").content
    assert WorkspaceFile.objects.get(state=FileState.LIVE).path == "a.txt"


def test_bytes_that_are_lost_are_not_found(client: Client, workspace: UserWorkspace) -> None:
    workspace.write("a.txt", b"x")
    file = WorkspaceFile.objects.get()
    WorkspaceFile.objects.update(object="1/nothing")
    for address in (f"/files/own/{file.public_id}/", f"/files/own/{file.public_id}/download"):
        assert client.get(address).status_code == 404
