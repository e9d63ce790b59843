"""Files in the browser: uploaded, shown only to their owner, never executed, removed if unsent."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from conversations.context.tokens.media import MOST_BYTES
from conversations.context.view import wire
from conversations.library.conversations import delete_conversation
from conversations.models import Attachment, Conversation, User
from tests.support import people_and_turns, small_files
from tests.support.attached_files import NOTES, PDF, PNG, kept, started

pytestmark = pytest.mark.django_db
HOSTILE = '"><img src=x onerror=alert(1)>.png'


@pytest.fixture
def user() -> User:
    return people_and_turns.person()


@pytest.fixture
def client(user: User) -> Client:
    found = Client()
    found.force_login(user)
    return found


def upload(client: Client, data: bytes = PNG, name: str = "cat.png", **more: str) -> Any:
    file = SimpleUploadedFile(name, data, content_type="application/x-lie")
    return client.post("/files/attached/", {"file": file, **more})


def test_an_upload_comes_back_as_it_waits_in_the_composer(client: Client, user: User) -> None:
    page = upload(client).content.decode()
    file = Attachment.objects.get(owner=user)
    assert f'<input type="hidden" name="attachments" value="{file.public_id}">' in page
    assert f'src="/files/{file.public_id}"' in page
    assert "64 × 48" in page
    assert f'data-tokens="{file.estimate}"' in page
    assert "Insert as text" not in page
    assert "Insert as text" in upload(client, NOTES, "n.txt").content.decode()


def test_what_a_file_is_called_and_said_to_be_means_nothing(client: Client) -> None:
    assert upload(client, small_files.pdf(), "cat.png").status_code == 200
    assert Attachment.objects.get().media_type == "application/pdf"
    page = upload(client, b"MZ\x90\0", "cat.png")
    assert page.status_code == 400
    assert b"are not taken" in page.content
    upload(client, b"<svg onload=alert(1)/>", "cat.png")
    drawn = client.get(f"/files/{Attachment.objects.latest('pk').public_id}")
    assert drawn["Content-Type"] == "text/plain; charset=utf-8"
    assert drawn["Content-Disposition"].startswith("attachment")


@pytest.mark.parametrize(
    "name",
    [HOSTILE, "a\u202egnp.exe", "x" * 300, "../../x", "a\r\nSet-Cookie: b=c.png", "\0", "é.png"],
)
def test_a_hostile_name_is_text_wherever_it_is_shown(client: Client, user: User, name: str) -> None:
    shown = kept(user, PDF, name)
    page = client.get(f"/files/waiting/?id={shown.public_id}").content.decode()
    page += client.get("/files/attached/").content.decode()
    turn = started(user, shown, kept(user, PNG, name))
    page += client.get(f"/c/{turn.conversation.public_id}/").content.decode()
    page += client.get("/files/attached/").content.decode()
    assert "<img src=x" not in page
    assert "\u202e" not in page
    for file in Attachment.objects.all():
        response = client.get(f"/files/{file.public_id}")
        header = response["Content-Disposition"]
        assert "\n" not in header
        assert "Set-Cookie" not in response.headers
        assert len(header) < 600


@pytest.mark.parametrize(
    ("data", "kind", "is_shown"),
    [
        (PNG, "image/png", True),
        (small_files.jpeg(), "image/jpeg", True),
        (small_files.gif(), "image/gif", True),
        (small_files.webp(), "image/webp", True),
        (PDF, "application/pdf", False),
        (NOTES, "text/plain; charset=utf-8", False),
        (PNG + b"<script>alert(1)</script>", "image/png", True),
        (b"GIF89a\x02\0\x02\0/*<html><script>alert(1)</script>*/", "image/gif", True),
    ],
)
def test_a_file_is_served_as_itself_and_can_do_nothing(
    client: Client, user: User, data: bytes, kind: str, is_shown: bool
) -> None:
    file = kept(user, data, "my file.bin")
    response = client.get(f"/files/{file.public_id}")
    assert (response.content, response["Content-Type"]) == (data, kind)
    assert response["Content-Disposition"].startswith("inline" if is_shown else "attachment")
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert response["Cache-Control"] == "private, max-age=31536000, immutable"
    assert response["Cross-Origin-Resource-Policy"] == "same-origin"


@pytest.mark.parametrize("kind", ["another", "staff", "superuser", "nobody"])
def test_a_file_is_its_owners_alone(client: Client, user: User, kind: str) -> None:
    waits, sent = kept(user), kept(user, PDF)
    started(user, sent)
    other = Client()
    if kind != "nobody":
        eve = people_and_turns.person(
            "eve", is_staff=kind != "another", is_superuser=kind == "superuser"
        )
        other.force_login(eve)
    before = people_and_turns.everything()
    for file in (waits, sent):
        theirs = other.get(f"/files/{file.public_id}")
        nobodys = other.get(f"/files/{uuid4()}")
        assert theirs.status_code == nobodys.status_code == (302 if kind == "nobody" else 404)
        assert theirs.content == nobodys.content
        removed = other.post(f"/files/{file.public_id}/remove/")
        assert removed.status_code == theirs.status_code
    page = other.get(f"/files/waiting/?id={waits.public_id}")
    assert b"cat.png" not in page.content
    assert people_and_turns.everything() == before


def test_a_file_of_a_chat_in_the_trash_is_not_found(client: Client, user: User) -> None:
    file = kept(user)
    turn = started(user, file)
    assert client.get(f"/files/{file.public_id}").status_code == 200
    delete_conversation(conversation=turn.conversation)
    assert client.get(f"/files/{file.public_id}").status_code == 404
    assert b"cat.png" not in client.get("/files/attached/").content


def test_what_is_too_big_is_refused_with_the_limit(client: Client) -> None:
    response = upload(client, b"%PDF-" + b"\0" * MOST_BYTES)
    assert (response.status_code, b"at most 22 MB" in response.content) == (413, True)
    response = client.post("/files/attached/", {"file": "no file"})
    assert (response.status_code, b"Choose a file first" in response.content) == (400, True)


def test_the_composer_is_told_the_limits(client: Client) -> None:
    page = client.get("/c/new/").content.decode()
    for fact in ('data-most-image="3932160"', 'data-most-files="20"', 'data-paste="8000"'):
        assert fact in page
    assert '<input type="file" name="files" multiple>' in page


def test_a_message_goes_with_its_files(client: Client, user: User) -> None:
    ids = [str(kept(user).public_id), str(kept(user, PDF, "a.pdf").public_id)]
    response = client.post("/c/start/", {"text": "", "attachments": ids})
    assert response.status_code == 302
    page = client.get(response["Location"]).content.decode()
    assert f'<img class="attached" src="/files/{ids[0]}" loading="lazy"' in page
    assert 'width="64" height="48" alt="cat.png"' in page
    assert f'<a class="file-card" href="/files/{ids[1]}" download>' in page
    assert 'class="bubble"' not in page.split('id="turn-1"')[1].split('class="answer"')[0]


def test_without_script_the_form_brings_the_files_itself(client: Client) -> None:
    files = [SimpleUploadedFile("cat.png", PNG), SimpleUploadedFile("n.txt", NOTES)]
    response = client.post("/c/start/", {"text": "Look.", "files": files})
    assert response.status_code == 302
    conversation = Conversation.objects.get()
    blocks = wire.decode(conversation.messages.get(kind="prompt").content)
    assert [block["type"] for block in blocks] == ["image", "document", "text"]
    bad = SimpleUploadedFile("x.svg", b"\0")
    response = client.post("/c/start/", {"text": "Keep me.", "files": [bad]})
    assert response.status_code == 400
    assert b"are not taken" in response.content
    assert b"Keep me." in response.content


@pytest.mark.parametrize("is_first", [True, False])
def test_a_repeated_form_adds_no_file(client: Client, user: User, is_first: bool) -> None:
    chat = f"/c/{started(user).conversation.public_id}"
    sent = {"text": "x", "client_id": uuid4()}
    for _ in range(3):
        sent["files"] = [SimpleUploadedFile("n.txt", NOTES)]
        path = "/c/start/" if is_first else f"{chat}/send/"
        assert client.post(path, sent).status_code == 302
    assert Attachment.objects.get().conversation is not None


@pytest.mark.parametrize("ids", [["x"], [str(uuid4())], ["\0"], ["1" * 400]])
def test_ids_that_are_no_files_are_refused_in_words(client: Client, ids: list[str]) -> None:
    before = people_and_turns.everything()
    response = client.post("/c/start/", {"text": "Hi", "attachments": ids})
    assert response.status_code == 400
    assert b"not there" in response.content
    assert people_and_turns.everything() == before


def test_a_draft_shows_what_still_waits(client: Client, user: User) -> None:
    waits, sent = kept(user), kept(user, PDF, "sent.pdf")
    started(user, sent)
    ids = "&".join(f"id={one}" for one in (sent.public_id, uuid4(), "x", "", waits.public_id))
    page = client.get(f"/files/waiting/?{ids}").content.decode()
    assert page.count("file-chip") == 1
    assert "cat.png" in page


def test_the_page_of_files_has_them_with_their_chats(client: Client, user: User) -> None:
    assert b"Nothing is attached yet" in client.get("/files/attached/").content
    waits, sent = kept(user, NOTES, "notes.txt"), kept(user)
    turn = started(user, sent, text="About the cat")
    page = client.get("/files/attached/").content.decode()
    assert page.index("cat.png") < page.index("notes.txt")
    assert f'href="/c/{turn.conversation.public_id}/"' in page
    assert "About the cat" in page
    assert page.count("/remove/") == 1
    response = client.post(f"/files/{sent.public_id}/remove/", {"page": "files"}, follow=True)
    assert b"it goes with its chat" in response.content
    response = client.post(f"/files/{waits.public_id}/remove/", {"page": "files"}, follow=True)
    assert b"was removed" in response.content
    assert b"notes.txt" not in response.content
    assert client.post(f"/files/{kept(user).public_id}/remove/").status_code == 204
    assert client.post(f"/files/{sent.public_id}/remove/").status_code == 409


def test_the_page_of_files_goes_by_pages(client: Client, user: User, monkeypatch: Any) -> None:
    from conversations.files import attachment_display

    monkeypatch.setattr(attachment_display, "PAGE", 2)
    for number in range(1, 6):
        kept(user, small_files.png(number, 1), f"file-{number}.png")
    seen, address = [], "/files/attached/"
    while address:
        page = client.get(address)
        rows = page.context["page"]
        seen += [row.name for row in rows.rows]
        address = f"/files/attached/?after={rows.after}" if rows.after else ""
    assert seen == [f"file-{number}.png" for number in (5, 4, 3, 2, 1)]
    assert client.get("/files/attached/?after=nonsense").status_code == 200
