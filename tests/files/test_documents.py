"""Office files, mails, pages and long texts as attachments: the text is sent, the file stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from conversations.audit import verify
from conversations.context.view import wire
from conversations.files import document_uploads
from conversations.files.attachments import AttachmentError, drop_attachment
from conversations.files.workspace import ChatWorkspace, UserWorkspace
from conversations.library import search
from conversations.models import Attachment, Blob, Turn, User
from conversations.toolbox.sources import Source, name_source
from conversations.turns import turns
from conversations.turns.forks import fork_conversation
from tests.support import people_and_turns
from tests.support.attached_files import kept, started, view_of
from tests.tools import samples
from tools.documents.attached_text import read_attached
from tools.framework.errors import FileMissingError, FileRefusedError
from tools.isolation import isolated_calls

pytestmark = pytest.mark.django_db
DECK = (Path(__file__).parents[1] / "data/deck.pptx").read_bytes()
BOOK = samples.xlsx({"Prices": [["Acme", 600.5]], "Notes": [["short"]]})
PAGE = b"<!doctype html><h1>Head</h1><script>x()</script><p>a <b>b</b>"
OLE, LOCKED = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "EncryptedPackage".encode("utf-16-le")
MAIL = b"From: ada@example.org\r\nSubject: Rates\r\nContent-Type: text/plain\r\n\r\nHello Bob"


@pytest.fixture
def user() -> User:
    return people_and_turns.person()


def sent_text(turn: Turn) -> str:
    block = wire.decode(view_of(turn).body)[0]["content"][0]
    assert (block["type"], block["source"]["media_type"]) == ("document", "text/plain")
    return str(block["source"]["data"])


@pytest.mark.parametrize(
    ("data", "name", "words"),
    [
        (samples.docx(), "cv.docx", "## Criteria"),
        (BOOK, "rates.xlsx", "[sheet Prices, A1:B1]\n| Acme | 600.5 |"),
        (DECK, "plan.pptx", "Notes: Say this slowly & clearly."),
        (MAIL, "letter.eml", "From: ada@example.org\nSubject: Rates\n\nHello Bob"),
        (PAGE, "page.html", "# Head\n\na b"),
        ("Größe;€\n1;2\n".encode("cp1252"), "old.csv", "| Größe | € |"),
        ("naïve = 1\n".encode("latin-1"), "old.py", "naïve = 1"),
        ("a long text é ".encode("utf-16"), "wide.txt", "a long text é"),
    ],
)  # fmt: skip
def test_the_text_of_a_document_is_sent_and_the_file_is_kept_to_the_byte(
    user: User, data: bytes, name: str, words: str
) -> None:
    turn = started(user, kept(user, data, name))
    assert words in sent_text(turn)
    assert "x()" not in sent_text(turn)
    row = Attachment.objects.get()
    assert (row.ending, row.characters) == (name.rpartition(".")[2], None)
    client = Client()
    client.force_login(user)
    answer = client.get(f"/files/{row.public_id}")
    assert (answer.content, answer["Content-Type"]) == (data, "application/octet-stream")
    assert answer["Content-Disposition"].startswith("attachment")
    page = client.get(f"/files/{row.public_id}/text/").content.decode()
    assert name in page
    assert [str(one) for one in verify.verify_everything(verify.Tally())] == []
    assert [row.kind for row in search.search_messages(user, name).rows] == ["prompt"]
    answered = people_and_turns.claimed(turn)
    people_and_turns.answered(answered)
    assert fork_conversation(turn=turn).attachments.get().original_id == row.original_id


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "<svg/>", "import os\n", "<template></template>"])
def test_what_is_a_text_already_is_sent_to_the_character(user: User, text: str) -> None:
    assert sent_text(started(user, kept(user, text.encode(), "x.vue"))) == text
    assert Attachment.objects.get().original is None


def test_of_a_long_file_the_beginning_is_sent_and_the_rest_is_read_by_tools(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_uploads, "MOST_SENT", 200)
    rows: list[list[object]] = [[f"row {number}", number] for number in range(400)]
    book = samples.xlsx({"Long": rows, "Short": [["all of it"]]})
    turn = started(user, kept(user, book, "rates.xlsx"), kept(user, MAIL, "a.eml"))
    text = sent_text(turn)
    assert len(text) < 600
    assert "read_file reads on in the folder attached, by the title of this document" in text
    assert "[sheet Long, A1:B400: the first " in text
    assert "[sheet Short, A1:A1]\n| all of it |" in text
    assert (Attachment.objects.order_by("pk")[0].characters or 0) > 5_000
    files = ChatWorkspace(user.pk, turn.conversation_id)
    assert files.read("attached/rates.xlsx") == book
    UserWorkspace(user.pk).write("notes.md", b"mine")
    everything = ["attached/a.eml", "attached/rates.xlsx", "notes.md"]
    assert [entry.path for entry in files.entries()] == everything
    assert [entry.path for entry in files.entries("attached")] == everything[:2]
    assert [entry.path for entry in files.entries("attached/a.eml")] == everything[:1]
    assert [entry.path for entry in UserWorkspace(user.pk).entries()] == ["notes.md"]


def test_files_of_one_name_have_titles_by_which_each_is_read(user: User) -> None:
    books = [samples.xlsx({"A": [[number]]}) for number in range(3)]
    turn = started(user, *(kept(user, book, "rates.xlsx") for book in books[:2]))
    people_and_turns.answered(people_and_turns.claimed(turn))
    ids = [kept(user, book, "rates.xlsx").public_id for book in books[1:]]
    send = {"conversation": turn.conversation, "text": "And?", "client_id": uuid4()}
    second = turns.send_prompt(attachments=ids, **send)
    assert turns.send_prompt(attachments=ids, **send) == second
    files = ChatWorkspace(user.pk, turn.conversation_id)
    blocks = [
        block
        for message in wire.decode(view_of(turn).body)
        for block in message["content"]
        if block["type"] == "document"
    ]
    titles = [block["title"] for block in blocks]
    assert titles == [
        "rates.xlsx", "rates (2).xlsx", "rates (3).xlsx", "rates (4).xlsx"
    ]  # fmt: skip
    assert [files.read(f"attached/{title}") for title in titles] == [*books[:2], *books[1:]]


def test_attached_files_are_only_read_and_only_in_their_chat(user: User) -> None:
    turn = started(user, kept(user, MAIL, "a.eml"))
    files = ChatWorkspace(user.pk, turn.conversation_id)
    for change in (
        lambda: files.write("attached/a.eml", b"x"),
        lambda: files.move("notes.md", "attached/a.eml"),
        lambda: files.delete("./attached/a.eml"),
    ):
        with pytest.raises(FileRefusedError, match="stays as it is"):
            change()
    files.write("attached/own.md", b"mine")
    assert files.read("attached/own.md") == b"mine"
    files.move("attached/own.md", "b.md")
    files.delete("b.md")
    other = ChatWorkspace(user.pk, started(user).conversation_id)
    for path in ("attached/a.eml", "attached/none"):
        with pytest.raises(FileMissingError):
            other.read(path)
    with pytest.raises(FileMissingError):
        other.entries("attached")


def test_what_is_read_in_the_folder_counts_as_attached() -> None:
    read: dict[str, Any] = {"origin": "workspace", "is_private": True}
    found = name_source("read_file", arguments={"path": "./attached/a.eml"}, **read)
    assert found == Source("attached", "a.eml")
    assert name_source("read_file", arguments={"path": "a"}, **read) == Source("workspace", "a")


@pytest.mark.parametrize(
    ("data", "name", "words"),
    [
        (OLE + LOCKED, "a.xlsx", "a password"),
        (OLE, "a.doc", "an Office file of an old kind"),
        (OLE, "a.msg", "a mail of Outlook; save it as EML"),
        (DECK[:9_000], "a.pptx", "or it is damaged"),
        (samples.archive({"ppt/media/a": bytes(50_000_000)}, base=DECK), "a.pptx", "the limits"),
        (samples.archive({"a": b"x"}), "a.zip", "no DOCX, XLSX or PPTX"),
        (b"MZ\x90\0", "a.exe", "are not taken"),
        (b"<html><img src=x></html>", "a.html", "There is no text in the file"),
        (b"a" * 22_000_001, "a.log", "at most 22 MB"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_in_a_sentence_and_leaves_nothing(
    user: User, data: bytes, name: str, words: str
) -> None:
    with pytest.raises(AttachmentError, match=words) as caught:
        kept(user, data, name)
    assert caught.value.text.endswith(".")
    assert not Attachment.objects.exists()
    assert not Blob.objects.exists()


def test_a_document_that_waits_too_long_to_be_read_is_not_called_damaged(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolated_calls, "PATIENCE", -1.0)
    with pytest.raises(AttachmentError, match="Too many files are being read now; try again"):
        kept(user, BOOK, "rates.xlsx")


def test_a_removed_document_leaves_neither_text_nor_file(user: User) -> None:
    assert drop_attachment(attachment=kept(user, DECK, "plan.pptx"))
    assert not Blob.objects.exists()


def test_short_parts_stay_whole_beside_long_ones() -> None:
    book = samples.xlsx({"A": [["x" * 900]], "B": [["y" * 40]], "C": [["z" * 900]]})
    text, size = read_attached(book, "a.xlsx", 500)
    assert size > 1_800
    assert len(text) < 800
    assert "y" * 40 in text
    assert text.count("the first ") == 2
    assert read_attached(b"a" * 600, "a.txt", 500)[0].startswith("[the first 500 of 600 ch")
