"""Files of messages afterwards: shown, recalled, put back, verified, erased, swept."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.utils import timezone

from conversations.audit import verify
from conversations.context.policy.policy import Policy
from conversations.context.steps.restore import build_restore
from conversations.context.view import edits
from conversations.context.view.edits import SpliceMessages, Trigger
from conversations.context.view.view import Message as ViewMessage
from conversations.files import attachments
from conversations.library.conversations import delete_conversation, delete_everything
from conversations.library.erase import erase_due_conversations
from conversations.library.search import search_messages
from conversations.log import append
from conversations.log.path import read_path
from conversations.log.triggers import list_guarded_tables
from conversations.models import Attachment, Blob, Conversation, Turn, User
from conversations.transcript import transcript
from conversations.transcript.originals import read_original
from conversations.turns import turns
from conversations.turns.queue import is_waiting, withdraw_prompt
from tests.support import people_and_turns, small_files, stored_turns
from tests.support.attached_files import NOTES, PDF, PNG, chat, kept, started, view_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def user() -> User:
    return people_and_turns.person()


def problems() -> list[str]:
    return [str(one) for one in verify.verify_everything(verify.Tally())]


def test_a_page_shows_files_with_one_query_more(
    user: User, django_assert_max_num_queries: Any
) -> None:
    turn = started(user, kept(user), kept(user, PDF, "a.pdf"))
    (shown,) = transcript.read_transcript(chat(turn)).turns
    picture, paper = shown.files
    assert (picture.name, picture.is_image, picture.box) == ("cat.png", True, (64, 48))
    assert (paper.name, paper.pages, paper.kind) == ("a.pdf", 3, "PDF")
    assert picture.url == f"/files/{picture.id}"
    with django_assert_max_num_queries(20) as seen:
        transcript.read_transcript(chat(turn))
    assert sum("conversations_attachment" in query["sql"] for query in seen) == 1


def test_a_file_is_found_by_its_name_and_a_text_by_its_words(user: User) -> None:
    started(user, kept(user, PDF, "Mietvertrag.pdf"), kept(user, NOTES, "list.txt"))
    for question in ("mietvertrag", "zeile"):
        assert [row.seq for row in search_messages(user, question).rows] == [1], question


def test_recall_gives_the_text_of_a_file_and_says_what_others_were(user: User) -> None:
    turn = started(user, kept(user), kept(user, PDF, "a.pdf"), kept(user, NOTES, "n.txt"))
    found = read_original(turn.conversation_id, "msg_1")
    assert found == (
        '[image, "cat.png", PNG, 64 × 48]\n\n[document, "a.pdf", PDF, 3 pages]\n\n'
        f'[document, "n.txt"]\n{NOTES.decode()}\n\nLook.'
    )


def test_a_prompt_put_back_is_named_in_the_record_and_whole_in_the_view(user: User) -> None:
    turn = started(user, kept(user, small_files.png(640, 480)), kept(user, NOTES))
    people_and_turns.answered(people_and_turns.claimed(turn))
    lease = people_and_turns.next_turn(turn.conversation)
    view = stored_turns.loaded(lease).view
    trim = edits.build_transformation(
        view, "trim", Trigger(1, 0, "estimated"), (SpliceMessages(1, 2),), "gone"
    )
    append.record_transformation(lease=lease, change=trim, policy=Policy(), summary_call=None)
    whole = [entry for entry in read_path(chat(turn)) if isinstance(entry, ViewMessage)]
    short = stored_turns.loaded(lease).view
    change = build_restore(short, whole[0])
    assert change is not None
    row = append.record_transformation(
        lease=lease, change=change, policy=Policy(), summary_call=None
    )
    assert base64.b64encode(PNG).decode() not in row.edits
    assert len(row.edits) < 2_000
    assert stored_turns.loaded(lease).view == change.view_after
    assert change.view_after.messages[0].content == whole[0].content


def tampered(statement: str, *values: object) -> None:
    with connection.cursor() as cursor:
        for verb in ("update", "delete"):
            table = Blob._meta.db_table
            assert table in list_guarded_tables()
            on = f' ON "{table}"' if connection.vendor == "postgresql" else ""
            cursor.execute(f'DROP TRIGGER IF EXISTS "{table}_keep_{verb}"{on}')
        cursor.execute(statement, values)


def test_an_altered_file_is_noticed(user: User) -> None:
    turn = started(user, kept(user))
    stored_turns.close(
        lease := people_and_turns.claimed(turn),
        people_and_turns.opened(lease).call,
        people_and_turns.complete(),
    )
    digest = Attachment.objects.get().data_id
    tampered("UPDATE conversations_blob SET text = 'AAAA' WHERE digest = %s", digest)
    found = problems()
    assert any("blob" in one and "changed" in one for one in found)
    assert any("apicall" in one and "rebuilds to" in one for one in found)


def test_a_missing_file_is_noticed(user: User) -> None:
    turn = started(user, kept(user))
    Attachment.objects.filter(conversation=turn.conversation).update(conversation=None)
    (found,) = problems()
    assert "names a file that is not there: sha256:" in found


def due(turn: Turn) -> None:
    turns.request_stop(turn=turn)
    delete_conversation(conversation=turn.conversation)
    Conversation.objects.filter(pk=turn.conversation_id).update(erase_at=timezone.now())


def test_a_file_goes_with_its_conversation_unless_another_has_it(user: User) -> None:
    first, second = started(user, kept(user), kept(user, PDF)), started(user, kept(user))
    due(first)
    assert erase_due_conversations() == 1
    assert [row.name for row in Attachment.objects.all()] == ["cat.png"]
    assert Blob.objects.count() == 1
    assert problems() == []
    due(second)
    assert erase_due_conversations() == 1
    assert not Attachment.objects.exists()
    assert not Blob.objects.exists()


def test_what_is_not_sent_goes_after_a_day_and_what_was_sent_stays(user: User) -> None:
    sent, waits, both = kept(user), kept(user, NOTES), kept(user, name="same bytes.png")
    turn = started(user, sent)
    later = timezone.now() + timedelta(hours=23)
    assert attachments.sweep_unsent(now=later) == 0
    assert attachments.sweep_unsent(now=later + timedelta(hours=2)) == 2
    assert list(Attachment.objects.all()) == [sent]
    assert not Blob.objects.filter(pk=waits.data_id).exists()
    assert both.data_id == Blob.objects.get().pk
    assert view_of(turn).size > 100
    assert problems() == []


def test_a_file_of_a_withdrawn_message_stays_where_an_earlier_one_has_it(user: User) -> None:
    shared, own = kept(user), kept(user, PDF, "a.pdf")
    conversation = chat(started(user, shared))
    client_id = uuid4()
    files = [shared.public_id, own.public_id]
    sent = turns.send_prompt(
        conversation=conversation, text="And these?", client_id=client_id, attachments=files
    )
    assert is_waiting(sent)
    assert withdraw_prompt(conversation=conversation, client_id=client_id)
    found = dict(Attachment.objects.values_list("name", "conversation"))
    assert found == {"cat.png": conversation.pk, "a.pdf": None}


def test_a_file_of_a_message_that_waited_for_days_is_there_for_the_next_one(user: User) -> None:
    conversation, file = chat(started(user)), kept(user)
    client_id, files = uuid4(), [file.public_id]
    turns.send_prompt(
        conversation=conversation, text="And this?", client_id=client_id, attachments=files
    )
    Attachment.objects.update(created_at=timezone.now() - timedelta(days=3))
    assert withdraw_prompt(conversation=conversation, client_id=client_id)
    assert attachments.sweep_unsent() == 0
    again = turns.send_prompt(
        conversation=conversation, text="And this?", client_id=uuid4(), attachments=files
    )
    assert is_waiting(again)
    assert file.data_id in again.content


def test_only_what_waits_is_removed(user: User) -> None:
    sent, waits = kept(user), kept(user, NOTES)
    started(user, sent)
    assert attachments.drop_attachment(attachment=waits)
    assert not attachments.drop_attachment(attachment=waits)
    assert not attachments.drop_attachment(attachment=sent)
    assert list(Attachment.objects.all()) == [sent]


def test_deleting_everything_leaves_no_file(user: User) -> None:
    bobs = kept(people_and_turns.person("bob"), NOTES, "bobs.txt")
    started(user, kept(user))
    kept(user, PDF)
    for turn in delete_everything(owner_id=user.pk):
        turns.request_stop(turn=turn)
    Turn.objects.update(state="cancelled")
    erase_due_conversations(owner_id=user.pk)
    assert attachments.drop_unsent(owner_id=user.pk) == 1
    assert list(Attachment.objects.all()) == [bobs]
    assert list(Blob.objects.all()) == [bobs.data]
