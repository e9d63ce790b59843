"""What follows the shown path: the meter, exports, pages, the next call; and what holds on all."""

from __future__ import annotations

import pytest

from conversations.agent.ports import Finish
from conversations.agent.usage import Usage
from conversations.audit.verify import Tally, verify_everything
from conversations.context.view import wire
from conversations.library.conversations import delete_conversation
from conversations.library.erase import erase_conversation
from conversations.log.rebuild import rebuild_request
from conversations.log.tree import filter_path_turns, find_newest_below
from conversations.log.turn_state import load_state
from conversations.models import ApiCall, ApiResult, Conversation, Message, Transformation, Turn
from conversations.transcript import meter, paging, transcript
from conversations.transfer.exports import EXPORT_FORMATS
from conversations.transfer.importing import import_recording
from conversations.transfer.recordings import read_record
from conversations.turns import turns
from conversations.turns.versions import regenerate_answer, show_version
from tests.support import people_and_turns, stored_turns
from tests.support.version_trees import again, clean, edited, fresh, say, talk, turn

pytestmark = pytest.mark.django_db


def test_requests_of_all_branches_are_rebuilt_to_the_byte() -> None:
    conversation = talk("one", "two", "three")
    edited(conversation, 2, "zwei")
    again(conversation, 1)
    show_version(turn=turn(conversation, 3))
    say(people_and_turns.next_turn(fresh(conversation), "four"))
    for call in ApiCall.objects.filter(conversation=conversation):
        assert rebuild_request(call).digest == call.body_digest
    assert clean()


def test_the_meter_is_that_of_the_shown_path() -> None:
    lease = people_and_turns.started_turn(people_and_turns.person(), "one")
    large, small = Usage(90_000, 50, 0, 0, 0), Usage(500, 50, 0, 0, 0)
    stored_turns.close(
        lease, people_and_turns.opened(lease).call, people_and_turns.complete(usage=large)
    )
    turns.finish_turn(lease=lease, finish=Finish("done", "end_turn"))
    conversation = people_and_turns.conversation_of(lease)
    lease = people_and_turns.claimed(regenerate_answer(turn=turn(conversation, 1)))
    assert meter.read_meter(fresh(conversation)).source == "estimated"
    assert meter.read_meter(fresh(conversation)).tokens < 1_000
    stored_turns.close(
        lease, people_and_turns.opened(lease).call, people_and_turns.complete(usage=small)
    )
    turns.finish_turn(lease=lease, finish=Finish("done", "end_turn"))
    assert meter.read_meter(fresh(conversation)).tokens == 550
    show_version(turn=turn(conversation, 1))
    assert meter.read_meter(fresh(conversation)).tokens == 90_050


def test_the_next_call_is_anchored_on_the_shown_path_however_many_others_there_are() -> None:
    conversation = talk("one", "two")
    found = load_state(fresh(conversation), stored_turns.MODEL).report
    for _ in range(3):
        edited(conversation, 1, "uno")
    show_version(turn=turn(conversation, 1))
    assert load_state(fresh(conversation), stored_turns.MODEL).report == found is not None


def test_exports_show_the_path_and_the_record_keeps_the_others() -> None:
    conversation = talk("one", "two")
    edited(conversation, 2, "zwei")

    def written(form: str) -> str:
        return "".join(EXPORT_FORMATS[form].write(fresh(conversation)))

    for form in ("md", "html"):
        assert "zwei" in written(form)
        assert "two" not in written(form)
    record = wire.decode(written("json"))
    prompts = [m["content"][0]["text"] for m in record["messages"] if m["role"] == "user"]
    assert prompts == ["one", "zwei"]
    assert [m["content"][0]["text"] for m in record["branches"]] == ["two", "Answer of turn 2"]
    assert {m["parent"] for m in record["branches"]} <= {m["seq"] for m in record["messages"]} | {
        m["seq"] for m in record["branches"]
    }
    copy = import_recording(
        user=people_and_turns.person("bob"),
        recording=read_record(written("json").encode()),
        model=stored_turns.MODEL,
    )
    assert [one.number for one in transcript.read_transcript(copy).turns] == [1, 2]
    assert "two" not in "".join(copy.messages.values_list("content", flat=True))


def test_all_branches_are_erased() -> None:
    conversation = talk("one", "two")
    edited(conversation, 1, "uno")
    delete_conversation(conversation=conversation)
    Conversation.objects.update(erase_at=conversation.created_at)
    assert erase_conversation(conversation_id=conversation.pk) is not None
    left = (Turn, Message, Transformation, ApiCall, ApiResult)
    assert not any(kind._default_manager.exists() for kind in left)
    assert clean()


def test_pages_follow_one_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript, "PAGE", 3)
    conversation = talk(*(f"q{at}" for at in range(1, 7)))
    edited(conversation, 3, "other")
    for at in range(4):
        say(people_and_turns.next_turn(fresh(conversation), f"o{at}"))
    found = fresh(conversation)
    assert [one.number for one in filter_path_turns(found).order_by("number")] == [
        1,
        2,
        7,
        8,
        9,
        10,
        11,
    ]
    newest = transcript.read_transcript(found)
    assert ([one.number for one in newest.turns], newest.earlier) == ([9, 10, 11], 9)
    earlier = transcript.read_transcript(found, before=9)
    assert ([one.number for one in earlier.turns], earlier.earlier) == ([2, 7, 8], 2)
    first = transcript.read_transcript(found, before=2)
    assert ([one.number for one in first.turns], first.earlier) == ([1], None)
    later = paging.read_page_after(found, 1)
    assert ([one.number for one in later.turns], later.later) == ([2, 7, 8], 8)
    of_another = paging.read_page_after(found, 3)
    assert [one.number for one in of_another.turns] == [4, 5, 6]
    assert find_newest_below(found, 3) == 6
    assert find_newest_below(found, 99) == 0


def test_a_message_of_another_version_is_shown_on_its_own_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transcript, "PAGE", 4)
    conversation = talk("one", "two", "three")
    edited(conversation, 2, "zwei")
    found = fresh(conversation)
    seq = turn(conversation, 2).messages.get(kind="prompt").seq
    page = paging.read_requested_page(found, {"m": str(seq)})
    assert page is not None
    assert paging.read_requested_page(found, {"turn": "2"}) == page
    page = paging.complete_page(found, page)
    assert [one.number for one in page.turns] == [1, 2, 3]
    assert page.branch == 3
    assert paging.read_requested_page(found, {"turn": "99"}) is None
    mine = paging.read_requested_page(
        found, {"m": str(turn(conversation, 4).messages.latest("seq").seq)}
    )
    assert mine is not None
    assert paging.complete_page(found, mine).branch is None


def test_an_end_that_is_not_of_the_last_turn_is_named_by_verification() -> None:
    conversation = talk("one", "two")
    Conversation.objects.update(leaf=1)
    (problem,) = verify_everything(Tally())
    assert "is not of its last turn 1" in problem.what
    assert problem.id == str(conversation.pk)
