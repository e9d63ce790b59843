"""Exports and imports in the browser: downloads, never pages of this site."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError, connection
from django.test import AsyncClient, Client

from conversations.agent.answer import ToolUse
from conversations.library.conversations import delete_conversation
from conversations.library.folders import add_folder, move_conversation
from conversations.live.render import render_snapshot
from conversations.models import Conversation
from conversations.runtime.adapters import workspace_for
from conversations.transcript.paging import Bookmark
from tests.support import people_and_turns, stored_turns
from tests.support.damaged_rows import list_messages, unguarded
from tests.web.test_library import client_of

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("form", "kind"), [("md", "text/markdown"), ("html", "text/html"), ("json", "application/json")]
)
def test_one_conversation_is_a_file_to_keep(form: str, kind: str) -> None:
    played = stored_turns.played(title='A "title"\r\nX: y')
    path = f"/c/{played.conversation.public_id}/export.{form}"
    answer = client_of(played.user).get(path)
    assert answer["Content-Type"].startswith(kind)
    assert answer["Content-Disposition"].startswith('attachment; filename="a-title-x-y-')
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Cache-Control"] == "no-store"
    assert "4711-ÄÖ" in b"".join(answer).decode()


def test_a_form_that_is_none_is_not_found() -> None:
    played = stored_turns.played()
    for form in ("pdf", "", "exe", "MD", "md.exe", "..", "%00", "html%0a"):
        path = f"/c/{played.conversation.public_id}/export.{form}"
        assert client_of(played.user).get(path).status_code == 404, form


def everything(client: Client, query: str = "") -> dict[str, bytes]:
    answer = client.get(f"/settings/data/export.zip{query}")
    assert answer["Content-Type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(b"".join(answer))) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_escape_of_a_lone_surrogate_that_is_stored_is_shown_and_exported() -> None:
    lease = people_and_turns.started_turn(people_and_turns.person("ada"))
    use = ToolUse("toolu_1", "write_file", r'{"path":"a.txt","content":"half \ud83d"}')
    block = f'{{"type":"tool_use","id":"toolu_1","name":"write_file","input":{use.input}}}'
    stored_turns.reply(lease, (block,), "tool_use", (use,))
    conversation = people_and_turns.conversation_of(lease)
    assert "half \ufffd" in render_snapshot(conversation.pk, Bookmark(), None).html
    client = client_of(conversation.owner)
    assert "half \ufffd" in client.get(f"/c/{conversation.public_id}/").content.decode()
    for form in ("md", "html"):
        answer = client.get(f"/c/{conversation.public_id}/export.{form}")
        assert "half \ufffd" in b"".join(answer).decode(), form
    files = everything(client)
    assert sum("half \ufffd" in data.decode() for data in files.values()) == 2


@pytest.mark.asyncio
@pytest.mark.django_db(transaction=True)
async def test_a_page_names_the_language_that_its_words_are_in() -> None:
    played = await sync_to_async(stored_turns.played)()
    client, path = AsyncClient(), f"/c/{played.conversation.public_id}/export.html"
    await client.aforce_login(played.user)
    answer = await client.get(path, headers={"Accept-Language": "de"})
    page = b"".join([piece async for piece in answer]).decode()
    assert '<html lang="de">' in page
    assert "<h2>Sie</h2>" in page


@pytest.mark.only_database("sqlite", "PostgreSQL keeps no such text")
def test_a_text_that_cannot_be_decoded_spoils_no_page_and_no_export() -> None:
    played = stored_turns.played()
    row = list_messages(played.conversation, "answer")[-1]
    damaged = row.content.replace("4711", "47\ufffd").encode().replace(b"\xef\xbf\xbd", b"\xc3")
    with unguarded(), connection.cursor() as cursor:
        sql = "UPDATE conversations_message SET content = CAST(%s AS text) WHERE id = %s"
        cursor.execute(sql, [damaged, row.pk])
    client = client_of(played.user)
    page = client.get(f"/c/{played.conversation.public_id}/")
    assert page.status_code == 200
    assert "47\ufffd" in page.content.decode()
    files = everything(client)
    assert sum("47\ufffd" in data.decode() for data in files.values()) == 3
    with pytest.raises(OperationalError, match="decode"):
        row.refresh_from_db()


def test_everything_of_mine_is_one_archive(settings: Any, tmp_path: Any) -> None:
    settings.DATA_DIR = tmp_path
    played = stored_turns.played(title="First talk")
    stored_turns.played(title="Second talk")
    thrown = stored_turns.played(title="Thrown talk")
    stored_turns.played("bob", title="Bob's secret")
    delete_conversation(conversation=thrown.conversation)
    workspace_for(played.user.pk).write("notes/ü.txt", b"mine")
    played.user.preferences = {"instructions": "Answer in verse."}
    played.user.policy = {"preset": "classic"}
    played.user.save(update_fields=["preferences", "policy"])
    work = add_folder(owner_id=played.user.pk, name="Work")
    move_conversation(conversation=played.conversation, folder=work)
    add_folder(owner_id=played.user.pk, name="Empty")
    files = everything(client_of(played.user), "?events=1")
    lines = files["conversations.jsonl"].splitlines()
    assert [json.loads(line)["title"] for line in lines] == ["First talk", "Second talk"]
    assert all("events" in json.loads(line) for line in lines)
    assert [json.loads(line)["folder"] for line in lines] == ["Work", None]
    assert files["workspace/notes/ü.txt"] == b"mine"
    account = json.loads(files["account.json"])
    assert account["username"] == "ada"
    assert account["preferences"]["instructions"] == "Answer in verse."
    assert account["context_policy"] == {"preset": "classic"}
    assert account["folders"] == ["Empty", "Work"]
    names = sorted(name.split("-")[0] for name in files if name.startswith(("md/", "html/")))
    assert names == ["html/first", "html/second", "md/first", "md/second"]
    assert not any(b"secret" in content for content in files.values())
    carl = people_and_turns.person("carl")
    answer = upload(client_of(carl), files["conversations.jsonl"])
    assert b"2 chats imported" in answer.content
    brought = carl.conversations.values_list("title", "folder__name")
    assert set(brought) == {("First talk", "Work"), ("Second talk", None)}


def test_an_archive_of_nothing_is_one_too(settings: Any, tmp_path: Any) -> None:
    settings.DATA_DIR = tmp_path
    assert set(everything(client_of(people_and_turns.person()))) == {
        "account.json",
        "conversations.jsonl",
        "prompts.json",
        "links.json",
    }


@pytest.mark.asyncio
@pytest.mark.django_db(transaction=True)
async def test_the_server_sends_the_pieces_as_they_are_made(settings: Any, tmp_path: Any) -> None:
    settings.DATA_DIR = tmp_path
    played = await sync_to_async(stored_turns.played)(result="x" * 300_000)
    client = AsyncClient()
    await client.aforce_login(played.user)
    answer = await client.get(f"/c/{played.conversation.public_id}/export.json")
    assert answer.is_async
    pieces = [piece async for piece in answer]
    assert len(pieces) > 1
    assert json.loads(b"".join(pieces))["title"] == "Read the file"
    answer = await client.get("/settings/data/export.zip")
    archive = zipfile.ZipFile(io.BytesIO(b"".join([piece async for piece in answer])))
    assert "conversations.jsonl" in archive.namelist()


def upload(client: Client, raw: bytes, name: str = "conversations.json") -> Any:
    return client.post("/settings/data/import/", {"file": SimpleUploadedFile(name, raw)})


def test_an_upload_says_what_became_of_each_conversation() -> None:
    client = client_of(people_and_turns.person())
    good = {"id": "a", "title": "<b>Good</b>", "messages": [{"role": "user", "content": "Hi"}]}
    bad = {"title": "<script>alert(1)</script>", "messages": []}
    raw = json.dumps([good, bad]).encode()
    html = upload(client, raw).content.decode()
    assert "1 chat imported" in html
    assert "1 could not be imported" in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "<script>alert" not in html
    assert f"/c/{Conversation.objects.get().public_id}/" in html
    assert "1 was here already" in upload(client, raw).content.decode()
    assert Conversation.objects.count() == 1


@pytest.mark.parametrize(
    ("raw", "status", "words"),
    [
        (b"hello", 400, "In dieser Datei sind keine Chats."),
        (b"PK\x03\x04", 400, "Die Datei kann nicht gelesen werden"),
        (b'[{"x": 1}]', 200, "Chat 1</bdi>: ist kein Chat in einem bekannten"),
    ],
)
def test_a_broken_file_is_answered_in_the_language_of_the_person(
    raw: bytes, status: int, words: str
) -> None:
    client = client_of(people_and_turns.person())
    file = SimpleUploadedFile("conversations.json", raw)
    asked = {"Accept-Language": "de"}
    answer = client.post("/settings/data/import/", {"file": file}, headers=asked)
    assert answer.status_code == status
    assert words in answer.content.decode()


def test_an_upload_that_is_none_says_why(settings: Any) -> None:
    client = client_of(people_and_turns.person())
    assert b"Choose a file first." in client.post("/settings/data/import/").content
    for raw, words in ((b"hello", b"no chats"), (b"PK\x03\x04", b"cannot be read")):
        answer = upload(client, raw)
        assert answer.status_code == 400
        assert words in answer.content
    settings.AGENTWEB_MAX_IMPORT_BYTES = 10
    assert b"at most" in upload(client, b"x" * 11).content
    assert not Conversation.objects.exists()
