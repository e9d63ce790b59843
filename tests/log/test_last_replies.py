"""The last replies, by which a turn begins: of the last turns alone, however many there are."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations.agent.ports import Finish
from conversations.agent.usage import Usage
from conversations.log.turn_state import MOST_REPLIES, _list_replies, load_state
from conversations.turns import turns
from tests.support import people_and_turns, stored_turns
from tests.support.database_steps import count_steps
from tests.support.reduced_conversations import import_talk

pytestmark = pytest.mark.django_db


def test_a_reply_before_many_turns_without_one_is_reported() -> None:
    lease = people_and_turns.started_turn()
    stored_turns.close(
        lease,
        people_and_turns.opened(lease).call,
        people_and_turns.complete(usage=Usage(1_000, 500, 0, 0, 0)),
    )
    turns.finish_turn(lease=lease, finish=Finish("done", "end_turn"))
    for _ in range(MOST_REPLIES + 2):
        lease = people_and_turns.next_turn(people_and_turns.conversation_of(lease))
        turns.finish_turn(lease=lease, finish=Finish("failed"))
    report = load_state(people_and_turns.conversation_of(lease), stored_turns.MODEL).report
    assert report is not None
    assert report.tokens == 1_500


def test_a_chat_without_a_call_is_not_searched_for_replies() -> None:
    conversation = import_talk()
    with CaptureQueriesContext(connection) as queries:
        state = load_state(conversation, stored_turns.MODEL)
    assert state.calls
    assert not [one for one in queries if "apiresult" in one["sql"]]


@pytest.mark.only_database("sqlite", "it counts the steps that it makes")
def test_a_longer_conversation_takes_no_more_work() -> None:
    lease = people_and_turns.started_turn()
    people_and_turns.answered(lease)
    conversation, found = people_and_turns.conversation_of(lease), list[int]()
    for size in (MOST_REPLIES + 5, 2 * MOST_REPLIES + 5):
        while conversation.leaf < size:
            people_and_turns.answered(people_and_turns.next_turn(conversation))
            conversation.refresh_from_db()
        found.append(count_steps(lambda: _list_replies(conversation, conversation.leaf)))
        assert len(_list_replies(conversation, conversation.leaf)) == MOST_REPLIES
    # A tree of twice as many rows may be one level deeper.
    assert found[1] < found[0] * 1.2, found
