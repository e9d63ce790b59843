"""The queue: messages sent under an answer are sent once, in their order, and never lost."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from conversations.agent.events import TurnClosed
from conversations.agent.ports import Finish
from conversations.context.view import wire
from conversations.files.attachments import drop_attachment
from conversations.library.conversations import delete_conversation
from conversations.live import render
from conversations.log.leases import Lease, claim_turn
from conversations.models import LIVE, Conversation, QueuedPrompt, Turn
from conversations.transcript.queue import read_queue
from conversations.turns import takeovers, turns
from conversations.turns.prompts import SendError
from conversations.turns.queue import is_waiting, send_next_prompt, withdraw_prompt
from tests.support import people_and_turns, stored_turns
from tests.support.attached_files import NOTES, kept
from tests.support.version_trees import clean, refused, talk

pytestmark = pytest.mark.django_db


def send(
    conversation: Conversation, text: str = "Later", client_id: Any = None, files: Any = ()
) -> Any:
    return turns.send_prompt(
        conversation=conversation,
        text=text,
        client_id=client_id or uuid4(),
        attachments=[file.public_id for file in files],
    )


def running(*texts: str) -> tuple[Lease, Conversation]:
    """Give a turn that runs, with messages that wait behind it."""
    lease = people_and_turns.started_turn()
    conversation = people_and_turns.conversation_of(lease)
    for text in texts:
        assert is_waiting(send(conversation, text))
    return lease, conversation


def finish(lease: Lease, state: str = "done", reason: str = "end_turn") -> Turn | None:
    if state == "done":
        stored_turns.close(lease, people_and_turns.opened(lease).call, people_and_turns.complete())
    return turns.finish_turn(lease=lease, finish=Finish(state, reason))  # type: ignore[arg-type]


def waiting(conversation: Conversation) -> list[str]:
    return [row.text for row in read_queue(conversation).rows]


def prompt_text(turn: Turn | None) -> str:
    assert turn is not None
    return str(wire.decode(turn.messages.get(kind="prompt").content)[0]["text"])


def test_a_message_under_an_answer_waits_and_is_no_part_of_the_log() -> None:
    lease, conversation = running("one", "two")
    assert waiting(conversation) == ["one", "two"]
    assert read_queue(conversation).is_live
    assert conversation.messages.count() == 1
    assert people_and_turns.turn_of(lease).state == "running"


def test_the_end_of_an_answer_sends_the_first_and_then_the_next() -> None:
    lease, _ = running("one", "two")
    for number, text in ((2, "one"), (3, "two")):
        following = finish(lease)
        assert prompt_text(following) == text
        assert following is not None
        assert (following.number, following.parent, following.state) == (
            number,
            number - 1,
            "queued",
        )
        lease = people_and_turns.claimed(following)
    assert finish(lease) is None
    assert not QueuedPrompt.objects.exists()
    assert clean()


def test_a_repeated_send_waits_once_also_when_it_was_sent_meanwhile() -> None:
    lease, conversation = running()
    name = uuid4()
    first = send(conversation, "once", name)
    assert send(conversation, "once", name).pk == first.pk
    with refused("reused_id"):
        send(conversation, "twice", name)
    following = finish(lease)
    assert following is not None
    assert send(conversation, "once", name).pk == following.pk
    with refused("reused_id"):
        send(conversation, "twice", name)
    assert conversation.turns.count() == 2


def test_a_few_wait_and_no_more(settings: Any) -> None:
    settings.AGENTWEB_MAX_QUEUED_PROMPTS = 2
    _, conversation = running("one", "two")
    before = people_and_turns.everything()
    with pytest.raises(SendError, match="still in the box") as caught:
        send(conversation, "three")
    assert caught.value.code == "queue_full"
    assert people_and_turns.everything() == before


@pytest.mark.parametrize(
    ("state", "reason"),
    [("failed", ""), ("failed", "budget"), ("cancelled", "stopped"), ("interrupted", "crash")],
)
def test_after_an_end_that_was_not_good_they_wait_until_they_are_sent(
    state: str, reason: str
) -> None:
    lease, conversation = running("one", "two")
    assert finish(lease, state, reason) is None
    assert waiting(conversation) == ["one", "two"]
    assert not read_queue(conversation).is_live
    turn = send_next_prompt(conversation=conversation)
    assert prompt_text(turn) == "one"
    with refused("busy"):
        send_next_prompt(conversation=conversation)
    assert turn is not None
    assert prompt_text(finish(people_and_turns.claimed(turn))) == "two"
    assert send_next_prompt(conversation=conversation) is None


def test_a_crash_leaves_them_where_they_are() -> None:
    lease, conversation = running("one")
    assert takeovers.take_over_turn(turn_id=lease.turn_id, everything=True) is not None
    assert waiting(conversation) == ["one"]
    assert takeovers.list_claimable_turns() == []
    turn = send_next_prompt(conversation=conversation)
    assert turn is not None
    assert takeovers.list_claimable_turns() == [turn.pk]


def test_what_is_written_meanwhile_is_sent_at_once_and_then_the_others() -> None:
    lease, conversation = running("one")
    finish(lease, "failed", "")
    turn = send(conversation, "First this")
    assert not is_waiting(turn)
    assert prompt_text(finish(people_and_turns.claimed(turn))) == "one"


def test_a_message_is_taken_back_once() -> None:
    _, conversation = running("one", "two")
    first = conversation.queued_prompts.first()
    assert first is not None
    assert withdraw_prompt(conversation=conversation, client_id=first.client_id)
    assert not withdraw_prompt(conversation=conversation, client_id=first.client_id)
    assert waiting(conversation) == ["two"]


def test_the_files_of_a_message_that_was_taken_back_wait_again() -> None:
    lease, conversation = running()
    user = conversation.owner
    sent, other = kept(user), kept(user, NOTES, "n.txt")
    finish(lease)
    lease = people_and_turns.claimed(send(conversation, files=[sent]))
    name = uuid4()
    assert is_waiting(send(conversation, "Look", name, files=[sent, other]))
    assert withdraw_prompt(conversation=conversation, client_id=name)
    sent.refresh_from_db()
    other.refresh_from_db()
    assert sent.conversation_id == conversation.pk
    assert other.conversation_id is None
    assert drop_attachment(attachment=other)
    assert clean()


def test_a_change_of_an_older_turn_leaves_the_running_one_its_stop() -> None:
    conversation = talk("one")
    lease = people_and_turns.next_turn(conversation, "two")
    assert 'id="stop"' in render.render_events(conversation.pk, TurnClosed(1))
    finish(lease)
    assert 'id="stop"' not in render.render_events(conversation.pk, TurnClosed(2))


def test_nothing_is_sent_in_the_trash() -> None:
    lease, conversation = running("one")
    call = people_and_turns.opened(lease).call
    delete_conversation(conversation=conversation)
    stored_turns.close(lease, call, people_and_turns.complete())
    assert turns.finish_turn(lease=lease, finish=Finish("done", "end_turn")) is None
    with refused("deleted"):
        send_next_prompt(conversation=conversation)
    assert waiting(conversation) == ["one"]


def test_the_place_of_the_ended_turn_is_free_for_the_next_one(settings: Any) -> None:
    settings.AGENTWEB_MAX_LIVE_TURNS = 1
    lease, conversation = running("one")
    following = finish(lease)
    assert following is not None
    with refused("too_many"):
        people_and_turns.queued(conversation.owner)
    finish(people_and_turns.claimed(following))
    people_and_turns.queued(conversation.owner)
    with refused("too_many"):
        send(conversation)


@pytest.mark.django_db(transaction=True)
def test_however_ends_and_sends_meet_each_message_is_sent_once() -> None:
    conversation = talk("start")
    sent = [f"m{at}" for at in range(9)]

    def play(at: int) -> None:
        if at < len(sent):
            try:
                send(conversation, sent[at])
            except SendError:  # too many wait
                sent[at] = ""
            return
        for _ in range(40):
            live = conversation.turns.filter(state="queued").first()
            lease = claim_turn(turn_id=live.pk, owner="test") if live else None
            if lease is not None:
                finish(lease)

    assert people_and_turns.failures(people_and_turns.crowd(10, play)) == []
    while True:
        live = conversation.turns.filter(state__in=LIVE).first()
        if live is None:
            break
        finish(people_and_turns.claimed(live))
    assert waiting(conversation) == []
    prompts = conversation.messages.filter(kind="prompt").order_by("seq")
    texts = [wire.decode(row.content)[0]["text"] for row in prompts]
    assert sorted(texts) == sorted(["start", *filter(None, sent)])
    assert clean()
