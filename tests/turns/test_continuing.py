"""Going on: a cut answer is asked for the rest, once, and the page shows it as what it is."""

from __future__ import annotations

from uuid import uuid4

import pytest

from conversations.agent.ports import Ending, Finish
from conversations.context.view import wire
from conversations.models import Conversation
from conversations.transcript import transcript
from conversations.transfer.exports import EXPORT_FORMATS
from conversations.turns import turns
from conversations.turns.versions import BROKEN_OFF, continue_turn, edit_prompt
from tests.support import people_and_turns, stored_turns
from tests.support.version_trees import again, answered, clean, fresh, refused, say, talk, turn

pytestmark = pytest.mark.django_db


def cut(finish: Finish, *blocks: str) -> Conversation:
    lease = people_and_turns.started_turn(people_and_turns.person(), "Tell me all")
    ending = Ending(
        "complete", people_and_turns.USAGE, "max_tokens", blocks or (people_and_turns.ANSWER,)
    )
    stored_turns.close(lease, people_and_turns.opened(lease).call, ending)
    turns.finish_turn(lease=lease, finish=finish)
    return people_and_turns.conversation_of(lease)


@pytest.mark.parametrize(
    "finish",
    [
        Finish("done", "max_tokens"),
        Finish("done", "truncated"),
        Finish("cancelled", "stopped"),
        Finish("interrupted", "crash"),
        Finish("failed", "", "cut", "Cut."),
    ],
)
def test_a_cut_answer_goes_on_behind_a_message_that_quotes_its_end(finish: Finish) -> None:
    words = "word " * 500 + "and the last one"
    conversation = cut(finish, wire.encode({"type": "text", "text": words}))
    first = turn(conversation, 1)
    (before,) = transcript.read_transcript(conversation).turns
    assert before.can_continue
    new = continue_turn(turn=first)
    text = wire.decode(new.messages.get().content)[0]["text"]
    assert "and the last one\n" in text
    assert len(text) < 1_000
    assert (new.parent, new.continues) == (1, first)
    assert continue_turn(turn=first).pk == new.pk
    answered(new)
    shape = transcript.read_transcript(fresh(conversation)).turns[1]
    assert shape.is_continuation
    for form in ("md", "html"):
        written = "".join(EXPORT_FORMATS[form].write(fresh(conversation)))
        assert "Continued" in written
        assert "cut off" not in written
    assert again(conversation, 2).continues == first
    with refused("continued"):
        edit_prompt(turn=new, text="x", client_id=uuid4())
    assert clean()


def test_an_answer_that_was_cut_behind_its_tools_goes_on_without_a_quote() -> None:
    lease = people_and_turns.started_turn()
    stored_turns.close(
        lease, people_and_turns.opened(lease).call, people_and_turns.tool_call_ending("t1")
    )
    turns.finish_turn(lease=lease, finish=Finish("interrupted", "crash"))
    new = continue_turn(turn=people_and_turns.turn_of(lease))
    assert wire.decode(new.messages.get().content)[0]["text"] == BROKEN_OFF


def test_what_is_whole_or_has_nothing_does_not_go_on() -> None:
    conversation = talk("one")
    (shape,) = transcript.read_transcript(conversation).turns
    assert not shape.can_continue
    with refused("whole"):
        continue_turn(turn=turn(conversation, 1))
    lease = people_and_turns.next_turn(conversation)
    with refused("busy"):
        continue_turn(turn=people_and_turns.turn_of(lease))
    turns.finish_turn(lease=lease, finish=Finish("cancelled", "stopped"))
    with refused("whole"):
        continue_turn(turn=people_and_turns.turn_of(lease))


def test_only_the_last_answer_goes_on() -> None:
    conversation = cut(Finish("done", "max_tokens"))
    say(people_and_turns.next_turn(conversation, "Something else"))
    with refused("moved"):
        continue_turn(turn=turn(conversation, 1))
