"""Files of messages: taken or refused, stored once, sent whole, and only by their owner."""

from __future__ import annotations

import base64
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest

from conversations.audit import verify
from conversations.context.view import attachment_refs, wire
from conversations.context.view.attachment_refs import MissingFile
from conversations.context.view.view import Message as ViewMessage
from conversations.files.attachments import AttachmentError, drop_attachment
from conversations.log import attachment_texts
from conversations.log.rebuild import rebuild_request
from conversations.models import ApiModel, Attachment, Blob, Conversation, Message, Turn, User
from conversations.transcript import meter, transcript
from conversations.turns import turns
from conversations.turns.prompts import SendError
from conversations.turns.versions import edit_prompt
from tests.support import people_and_turns, small_files, stored_turns
from tests.support.attached_files import NOTES, PDF, PNG, chat, kept, started, view_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def user() -> User:
    return people_and_turns.person()


def refused(user: User, *ids: UUID, turn: Turn | None = None) -> SendError:
    sent: dict[str, Any] = {"text": "x", "client_id": uuid4(), "attachments": ids}
    begin = partial(turns.start_conversation, owner_id=user.pk, model=stored_turns.MODEL)
    send = partial(turns.send_prompt, conversation=turn.conversation) if turn else begin
    with pytest.raises(SendError) as caught:
        send(**sent)
    return caught.value


def problems() -> list[str]:
    return [str(one) for one in verify.verify_everything(verify.Tally())]


# Stored once, sent whole.


def test_a_prompt_names_its_files_and_the_model_is_sent_them(user: User) -> None:
    files = [kept(user), kept(user, PDF, "a.pdf"), kept(user, NOTES, "notes.txt")]
    turn = started(user, *files)
    content = Message.objects.get(turn=turn).content
    assert len(content) < 1_000
    sent = wire.decode(view_of(turn).body)[0]["content"]
    picture, paper, notes, words = sent
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}
    assert picture == {"type": "image", "source": source}
    assert (base64.b64decode(paper["source"]["data"]), paper["title"]) == (PDF, "a.pdf")
    plain = {"type": "text", "media_type": "text/plain", "data": NOTES.decode()}
    assert notes == {"type": "document", "source": plain, "title": "notes.txt"}
    assert words["text"] == "Look."
    assert not Attachment.objects.filter(conversation=None).exists()


def test_the_same_bytes_are_one_text_however_often_they_are_sent(user: User) -> None:
    first = started(user, kept(user), kept(user, name="again.png"))
    started(people_and_turns.person("bob"), kept(User.objects.get(username="bob"), name="bobs.png"))
    assert Blob.objects.count() == 1
    assert Attachment.objects.count() == 3
    assert view_of(first).body.count('"type":"image"') == 2


def test_a_prompt_weighs_with_its_files_and_the_meter_counts_them(user: User) -> None:
    files = [kept(user, small_files.png(750, 100)), kept(user, PDF, "a.pdf")]
    turn = started(user, *files)
    row = Message.objects.get(turn=turn)
    whole = ViewMessage.parse(
        0, "prompt", attachment_texts.expand_attachments(turn.conversation_id, row.content)
    )
    assert row.estimate == whole.tokens == view_of(turn).tokens
    assert [file.estimate for file in files] == [block.tokens for block in whole.blocks[:2]]
    assert row.estimate > 100 + 3 * 2_500
    assert meter.read_meter(chat(turn)).tokens == row.estimate


def test_a_file_may_be_all_there_is_to_say(user: User) -> None:
    turn = started(user, kept(user, name="cat of ours.png"), text="  ")
    assert turn.conversation.title == "cat of ours.png"
    assert [block.type for block in view_of(turn).messages[0].blocks] == ["image"]
    (shown,) = transcript.read_transcript(chat(turn)).turns
    assert shown.prompt_html == ""
    with pytest.raises(SendError) as caught:
        started(user, text=" ")
    assert caught.value.code == "empty"


def test_what_was_sent_is_rebuilt_and_verified(user: User) -> None:
    lease = people_and_turns.claimed(started(user, kept(user), kept(user, NOTES, "n.txt")))
    sent = people_and_turns.opened(lease)
    stored_turns.close(lease, sent.call, people_and_turns.complete())
    call = stored_turns.last_call(people_and_turns.conversation_of(lease))
    assert base64.b64encode(PNG).decode() in sent.body
    assert rebuild_request(call).digest == call.body_digest
    assert problems() == []


def test_a_repeated_send_and_one_in_other_words_have_the_same_files(user: User) -> None:
    turn, file = started(user), kept(user)
    people_and_turns.answered(people_and_turns.claimed(turn))
    name, ids = uuid4(), [file.public_id]
    again = {"conversation": turn.conversation, "text": "Look.", "client_id": name}
    first = turns.send_prompt(attachments=ids, **again)
    assert turns.send_prompt(attachments=ids, **again) == first
    with pytest.raises(SendError) as caught:
        turns.send_prompt(**again)
    assert caught.value.code == "reused_id"
    assert isinstance(first, Turn)
    people_and_turns.answered(people_and_turns.claimed(first))
    second = turns.send_prompt(
        conversation=turn.conversation, text="Again.", client_id=uuid4(), attachments=ids
    )
    assert Attachment.objects.count() == 1
    assert Message.objects.filter(content__contains=file.data_id).count() == 2
    assert second != first


def test_a_start_is_repeated_with_its_files(user: User) -> None:
    file = kept(user)
    name = uuid4()
    both = [
        turns.start_conversation(
            owner_id=user.pk,
            model=stored_turns.MODEL,
            text="x",
            client_id=name,
            attachments=[file.public_id],
        )
        for _ in range(2)
    ]
    assert both[0] == both[1]
    assert Conversation.objects.count() == 1


# What may be sent.


def test_nobody_sends_the_file_of_another(user: User) -> None:
    theirs = kept(people_and_turns.person("eve"))
    sent = started(User.objects.get(username="eve"), kept(User.objects.get(username="eve")))
    ids = [theirs.public_id, Attachment.objects.get(conversation=sent.conversation).public_id]
    before = people_and_turns.everything()
    for name in [*ids, uuid4()]:
        assert refused(user, name).code == "gone"
    assert people_and_turns.everything() == before


def test_a_name_reaches_no_file_of_another_conversation(user: User) -> None:
    started(user, kept(user))
    other = started(user)
    digest = Attachment.objects.get().data_id
    content = wire.join([attachment_refs.write_block("image/png", digest, "")])
    with pytest.raises(MissingFile):
        attachment_texts.expand_attachments(other.conversation_id, content)


def test_a_file_sent_in_one_chat_is_not_sent_in_another_by_its_id(user: User) -> None:
    file = kept(user)
    started(user, file)
    assert refused(user, file.public_id).code == "gone"


def test_a_message_takes_so_many_files(user: User, settings: Any) -> None:
    settings.AGENTWEB_MAX_ATTACHMENTS = 2
    ids = [kept(user, small_files.png(number, 1)).public_id for number in (1, 2, 3)]
    assert refused(user, *ids).code == "too_many"
    assert Attachment.objects.filter(conversation=None).count() == 3


def test_a_conversation_carries_no_more_than_a_request_takes(user: User) -> None:
    turn = started(user, kept(user))
    mine = Attachment.objects.filter(conversation=turn.conversation)
    people_and_turns.answered(people_and_turns.claimed(turn))
    mine.update(size=22_400_000)
    more = kept(user, PDF, "a.pdf")
    Attachment.objects.filter(pk=more.pk).update(size=200_000)
    error = refused(user, more.public_id, turn=turn)
    assert (error.code, "carry 30 MB" in error.text) == ("carried", True)
    assert Attachment.objects.get(pk=more.pk).conversation is None


def test_what_a_request_carries_is_counted_as_often_as_it_is_sent(user: User) -> None:
    turn = started(user, kept(user))
    people_and_turns.answered(people_and_turns.claimed(turn))
    mine = Attachment.objects.filter(conversation=turn.conversation)
    mine.update(size=12_000_000)
    assert refused(user, mine.get().public_id, turn=turn).code == "carried"
    one = kept(user, PDF, "a.pdf")
    Attachment.objects.filter(pk=one.pk).update(size=12_000_000)
    assert refused(user, one.public_id, turn=turn).code == "carried"
    # Edited away, it is in no request of the path that is shown.
    other = edit_prompt(turn=turn, text="Without.", client_id=uuid4(), keep=[])
    waiting = {"conversation": turn.conversation, "text": "x", "attachments": [one.public_id]}
    turns.send_prompt(**waiting, client_id=uuid4())
    # What waits in the queue will be there.
    two = kept(user, NOTES, "n.txt")
    Attachment.objects.filter(pk=two.pk).update(size=16_000_000)
    assert refused(user, two.public_id, turn=other).code == "carried"


def test_a_repeated_send_needs_no_room(user: User) -> None:
    turn = started(user)
    people_and_turns.answered(people_and_turns.claimed(turn))
    file = kept(user)
    Attachment.objects.filter(pk=file.pk).update(size=20_000_000)
    sent = {"conversation": turn.conversation, "text": "x", "client_id": uuid4()}
    first = turns.send_prompt(**sent, attachments=[file.public_id])
    same = kept(user)
    Attachment.objects.filter(pk=same.pk).update(size=20_000_000)
    assert turns.send_prompt(**sent, attachments=[same.public_id]) == first
    assert Attachment.objects.get(conversation=None) == same


def test_many_images_are_small_ones(user: User, settings: Any) -> None:
    settings.AGENTWEB_MAX_ATTACHMENTS = 30
    files = [kept(user, small_files.png(number, 1)) for number in range(1, 21)]
    large = kept(user, small_files.png(2_001, 1))
    assert refused(user, *(file.public_id for file in [*files, large])).code == "many_images"
    turn = started(user, *files[1:], large)
    people_and_turns.answered(people_and_turns.claimed(turn))
    assert refused(user, files[0].public_id, turn=turn).code == "many_images"


def test_pages_are_as_many_as_the_model_takes(user: User) -> None:
    turn = started(user)
    people_and_turns.answered(people_and_turns.claimed(turn))
    file = kept(user, small_files.pdf(101), "long.pdf")
    ApiModel.objects.filter(pk=stored_turns.MODEL).update(window=200_000)
    assert refused(user, file.public_id, turn=turn).code == "pages"
    ApiModel.objects.filter(pk=stored_turns.MODEL).update(window=1_000_000)
    turns.send_prompt(
        conversation=turn.conversation, text="", client_id=uuid4(), attachments=[file.public_id]
    )


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (b"", "empty", "The file is empty."),
        (b"MZ\x90\0", "type", "images (PNG, JPEG, GIF, WebP), PDF, Word, Excel"),
        (small_files.locked_pdf(), "locked", "without a password"),
        (small_files.jpeg(9_000, 1), "pixels", "9,000 pixels; at most 8,000"),
        (small_files.pdf(700), "pages", "700 pages; at most 600"),
        (small_files.png() + b"\0" * 4_000_000, "large", "at most 3.9 MB are taken"),
        (b"\x89PNG\r\n\x1a\n<script>", "broken", "may be damaged"),
        (f"blob:{wire.digest('x')}".encode(), "type", "no file itself"),
    ],
)
def test_what_is_not_taken_is_refused_in_a_sentence(
    user: User, data: bytes, code: str, words: str
) -> None:
    with pytest.raises(AttachmentError) as caught:
        kept(user, data)
    assert caught.value.code == code
    assert words in caught.value.text
    assert caught.value.text.endswith(".")
    assert not Attachment.objects.exists()
    assert not Blob.objects.exists()


def test_a_user_leaves_no_more_than_so_much_waiting(user: User, settings: Any) -> None:
    settings.AGENTWEB_MAX_UNSENT_FILES = 2
    first = kept(user)
    kept(user, NOTES)
    with pytest.raises(AttachmentError) as caught:
        kept(user, PDF)
    assert (caught.value.code, "at most 2 with" in caught.value.text) == ("full", True)
    started(user, first)
    settings.AGENTWEB_MAX_UNSENT_BYTES = len(NOTES) + len(PDF) - 1
    with pytest.raises(AttachmentError):
        kept(user, PDF)
    kept(people_and_turns.person("bob"), PDF)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("cat.png", "cat.png"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\ada\\cat.png", "cat.png"),
        ("<img src=x onerror=alert(1)>.png", "<img src=x onerror=alert(1)>.png"),
        ("evil\u202egnp.exe", "evilgnp.exe"),
        ("a\0b\r\nX: y\x7f\ud800.png", "abX: y.png"),
        ("a\u2028b  c\u200b\U000e0041.png", "ab c.png"),
        ("👩\u200d👩\u200d👧 می\u200cخواهم.png", "👩\u200d👩\u200d👧 می\u200cخواهم.png"),
        ("in\u200cvoice\u200d.png", "invoice.png"),
        ("\u200d👩\u200d\u200d👧\u200d.png", "👩👧.png"),
        ("", "file.png"),
        (" .. ", "file.png"),
        ("/", "file.png"),
        ("x" * 300, "x" * 119 + "…"),
        ("x" * 300 + ".jpeg", "x" * 110 + "….jpeg"),
    ],
)
def test_a_name_is_for_showing_only(user: User, name: str, shown: str) -> None:
    assert kept(user, name=name).name == shown


@pytest.mark.django_db(transaction=True)
def test_of_many_who_send_or_remove_a_file_at_once_one_has_it() -> None:
    user = people_and_turns.person()
    file = kept(user)

    def one(at: int) -> str:
        if at % 3 == 2:
            return "removed" if drop_attachment(attachment=file) else "kept"
        return f"sent {started(user, file).pk}"

    found = people_and_turns.crowd(6, one)
    assert {type(each) for each in people_and_turns.failures(found)} <= {SendError}
    done = [each for each in found if isinstance(each, str) and each != "kept"]
    assert len(done) == 1
    is_sent = done[0].startswith("sent")
    assert Attachment.objects.exclude(conversation=None).count() == int(is_sent)
    assert Blob.objects.count() == Conversation.objects.count() == int(is_sent)
