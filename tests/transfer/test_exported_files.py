"""Files in exports and imports: whole in the record, named again when they come back."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import pytest

from conversations.audit import verify
from conversations.context.view import attachment_refs, wire
from conversations.library.search import search_messages
from conversations.log.search_index import reindex_conversations
from conversations.log.turn_state import load_state
from conversations.models import Attachment, Blob, Conversation, User
from conversations.transcript import transcript
from conversations.transfer import unpacking
from conversations.transfer.exports import EXPORT_FORMATS, write_record
from conversations.transfer.importing import import_recording
from conversations.transfer.recordings import RecordError, parse_recording, read_record
from conversations.transfer.unpacking import UploadError, read_objects
from tests.support import people_and_turns, small_files, stored_turns
from tests.support.attached_files import NOTES, PDF, PNG, chat, kept, started, view_of

pytestmark = pytest.mark.django_db
DATA = base64.b64encode(PNG).decode()
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}}


@pytest.fixture
def user() -> User:
    return people_and_turns.person()


def exported(conversation: Conversation, form: str) -> str:
    return "".join(EXPORT_FORMATS[form].write(conversation, with_events=True))


def imported(user: User, *blocks: Any) -> Conversation:
    said = [{"role": "user", "content": [*blocks, {"type": "text", "text": "Look."}]}]
    line = {"id": "r1", "messages": [*said, {"role": "assistant", "content": "ok"}]}
    return import_recording(user=user, recording=parse_recording(line), model=stored_turns.MODEL)


def body_of(conversation: Conversation) -> str:
    return load_state(Conversation.objects.get(pk=conversation.pk), stored_turns.MODEL).view.body


def test_what_is_exported_is_imported_as_the_same_bytes(user: User) -> None:
    files = [kept(user), kept(user, PDF, "a.pdf"), kept(user, NOTES, "n.txt"), kept(user)]
    turn = started(user, *files)
    people_and_turns.answered(people_and_turns.claimed(turn))
    line = "".join(write_record(chat(turn))).encode()
    assert line.count(DATA.encode()) == 2
    bob = people_and_turns.person("bob")
    copy = import_recording(user=bob, recording=read_record(line), model=stored_turns.MODEL)
    assert body_of(copy) == view_of(turn).body
    assert DATA not in copy.messages.get(kind="prompt").content
    mine = Attachment.objects.filter(conversation=copy)
    assert [(row.owner, row.media_type) for row in mine.order_by("pk")] == [
        (bob, "image/png"), (bob, "application/pdf"), (bob, "text/plain"),
    ]  # fmt: skip
    assert list(mine.order_by("pk").values_list("name", flat=True)) == [
        "file.png",
        "a.pdf",
        "n.txt",
    ]
    assert Blob.objects.count() == 3
    (shown,) = transcript.read_transcript(copy).turns
    assert [file.is_image for file in shown.files] == [True, False, False, True]
    assert copy.messages.get(kind="prompt").estimate == chat(turn).messages.get(seq=1).estimate
    assert [str(one) for one in verify.verify_everything(verify.Tally())] == []


@pytest.mark.parametrize(
    "source",
    [
        {"type": "base64", "media_type": "image/png", "data": DATA + "\n"},
        {"data": DATA, "media_type": "image/png", "type": "base64"},
        {"type": "url", "url": "https://a.example/a.png"},
    ],
)
def test_what_is_no_such_file_stays_as_it_came(user: User, source: dict[str, str]) -> None:
    block = {"type": "image", "source": source}
    copy = imported(user, block)
    assert wire.decode(body_of(copy))[0]["content"][0] == block
    assert list(wire.decode(body_of(copy))[0]["content"][0]["source"]) == list(source)
    assert not Attachment.objects.exists()


def test_a_record_that_names_a_stored_file_is_refused(user: User) -> None:
    theirs = kept(people_and_turns.person("eve"))
    name = f"blob:{theirs.data_id}"
    source = {"type": "base64", "media_type": "image/png", "data": name}
    paper = {"type": "base64", "media_type": "application/pdf", "data": name}
    words = {"type": "text", "media_type": "text/plain", "data": name}
    for block in (
        {"type": "document", "source": words},
        {"type": "image", "transformations": {"source": source}, "source": IMAGE["source"]},
    ):
        with pytest.raises(RecordError):
            imported(user, block)
    assert not Conversation.objects.exists()
    said = json.dumps({"type": "image", "source": source})
    copy = imported(
        user,
        {"type": "text", "text": said},
        {"type": "image", "source": source},
        {"type": "document", "source": paper},
        {"type": "image", "x": {"source": source}, "source": source},
    )
    assert not attachment_refs.list_references(copy.messages.get(kind="prompt").content)
    assert DATA not in body_of(copy)
    assert name in body_of(copy)


def test_an_imported_file_is_one_text_and_one_row(user: User) -> None:
    copy = imported(user, IMAGE, IMAGE)
    assert Attachment.objects.count() == Blob.objects.count() == 1
    assert body_of(copy).count(DATA) == 2


def test_markdown_and_the_page_have_files_as_they_can(user: User) -> None:
    turn = started(user, kept(user), kept(user, PDF, "a.pdf"), kept(user, NOTES, "n.txt"))
    people_and_turns.answered(people_and_turns.claimed(turn))
    text = exported(chat(turn), "md")
    assert '[image, "cat.png", PNG, 64 × 48]' in text
    assert '[document, "a.pdf", PDF, 3 pages]' in text
    assert f"```\n{NOTES.decode()}\n```" in text
    page = exported(chat(turn), "html")
    assert f'src="data:image/png;base64,{DATA}"' in page
    assert "a.pdf" in page
    assert "/files/" not in page


def test_search_finds_what_files_are_called_and_what_texts_say(user: User) -> None:
    started(user, kept(user, name="kittens.png"), kept(user, NOTES, "n.txt"))

    def hits(question: str) -> int:
        return len(search_messages(user, question).rows)

    words = ("kittens", "zeile", "second line", "iVBOR", "sha256")
    for _ in range(2):
        assert [hits(word) for word in words] == [1, 1, 1, 0, 0]
        reindex_conversations()


def test_the_data_of_files_counts_apart_where_an_upload_is_bounded() -> None:
    def read(text: bytes) -> int:
        return len(list(read_objects(io.BytesIO(text), most=10**9, most_each=20_000)))

    inside = b'{"data":"' + b"A" * 60_000 + b'","text":"' + b"b " * 9_000 + b'"}'
    assert read(inside) == read(b"[" + inside + b"]") == 1
    for text in (
        b'{"text":"' + b"b " * 10_001 + b'"}',
        b'{"data":"' + b"A" * (20_000 * unpacking.WITH_FILES) + b'"}',
        b'{"data":[' + b'"AAAA",' * 4_000 + b"1]}",
    ):
        for packed in (text, b"[" + text + b"]"):
            with pytest.raises(UploadError) as caught:
                read(packed)
            assert caught.value.code == "too_big"


def test_a_large_image_is_taken_along_too(user: User) -> None:
    noise = small_files.png(600, 400) + bytes(range(256)) * 4_000
    copy = imported(
        user, {**IMAGE, "source": {**IMAGE["source"], "data": base64.b64encode(noise).decode()}}
    )
    assert Attachment.objects.get(conversation=copy).size == len(noise)
