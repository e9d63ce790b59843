"""The path: what the log says up to a tip, and what a next call is anchored on."""

from __future__ import annotations

from uuid import uuid4

import pytest

from conversations.agent.ports import Ending
from conversations.agent.usage import Usage, read_usage
from conversations.context.policy.gauge import Gauge
from conversations.context.policy.policy import PRESETS
from conversations.context.steps import api_clearing
from conversations.context.view.edits import SpliceMessages, Trigger, build_transformation
from conversations.context.view.view import Message as ViewMessage
from conversations.log import append
from conversations.log.path import Change, fold_path, read_path
from conversations.log.rebuild import rebuild_request
from conversations.log.turn_state import load_state
from conversations.models import ApiCall, Conversation, Message
from conversations.turns import turns
from tests.support import people_and_turns, stored_turns

pytestmark = pytest.mark.django_db


def seqs(conversation: Conversation, tip: int | None = None) -> list[int]:
    return [entry.seq for entry in read_path(conversation, tip)]


def test_a_path_goes_from_the_first_entry_to_its_tip() -> None:
    conversation = stored_turns.played().conversation
    conversation.refresh_from_db()
    assert seqs(conversation) == list(range(1, conversation.tip + 1))
    assert seqs(conversation, 3) == [1, 2, 3]
    assert seqs(conversation, 0) == []


def test_a_branch_is_a_path_of_its_own_and_the_other_one_stays() -> None:
    conversation = stored_turns.played().conversation
    conversation.refresh_from_db()
    before = fold_path(read_path(conversation)).body
    old = conversation.tip
    Conversation.objects.filter(pk=conversation.pk).update(tip=1)
    conversation.refresh_from_db()
    turn = turns.send_prompt(conversation=conversation, text="Another way", client_id=uuid4())
    conversation.refresh_from_db()
    assert seqs(conversation) == [1, old + 1]
    assert turn.messages.get().parent == 1
    assert fold_path(read_path(conversation, old)).body == before
    for call in ApiCall.objects.filter(conversation=conversation):
        assert rebuild_request(call).digest == call.body_digest


def test_the_view_holds_what_was_reduced_and_the_log_what_was_said() -> None:
    played = stored_turns.played()
    view = load_state(played.conversation, stored_turns.MODEL).view
    assert stored_turns.LONG not in view.body
    assert "short" in view.body
    stored = Message.objects.filter(conversation=played.conversation, kind="results").get()
    assert "4711-ÄÖ" in stored.content


def test_a_change_that_was_not_applied_leaves_the_view_alone() -> None:
    conversation = stored_turns.played().conversation
    conversation.refresh_from_db()
    entries = read_path(conversation)
    rejected = [e for e in entries if isinstance(e, Change) and e.outcome == "rejected"]
    assert rejected
    for entry in rejected:
        before = fold_path(read_path(conversation, entry.seq - 1))
        assert fold_path(read_path(conversation, entry.seq)).body == before.body
        assert fold_path([entry], before).body == before.body


def test_the_report_is_that_of_the_last_whole_reply() -> None:
    lease = people_and_turns.started_turn()
    assert stored_turns.loaded(lease).report is None
    stored_turns.close(
        lease,
        people_and_turns.opened(lease).call,
        people_and_turns.complete(usage=Usage(900, 50, 40, 10, 0)),
    )
    found = stored_turns.loaded(lease)
    assert found.report.tokens == 900 + 50 + 40 + 10
    assert found.bound_to == stored_turns.ENVELOPE.binding


def test_what_was_cut_or_said_by_another_model_is_no_report() -> None:
    lease = people_and_turns.started_turn()
    usage = Usage(900, 50, 0, 0, 0)
    stored_turns.close(
        lease, people_and_turns.opened(lease).call, people_and_turns.complete(usage=usage)
    )
    assert load_state(people_and_turns.conversation_of(lease), "another-model").report is None
    cut = Ending("truncated", usage, blocks=(people_and_turns.ANSWER,))
    stored_turns.close(lease, people_and_turns.opened(lease).call, cut)
    assert stored_turns.loaded(lease).report is None


def test_rejected_summaries_in_a_row_are_counted() -> None:
    lease = people_and_turns.started_turn()
    stored_turns.reply(lease, (people_and_turns.ANSWER,), "end_turn")
    append.store_results(
        lease=lease, content='[{"type":"text","text":"' + "x " * 999 + '"}]', estimate=900
    )
    for count in (1, 2, 3):
        stored_turns.summarise(lease)
        assert stored_turns.loaded(lease).rejected == count


def test_an_entry_estimates_what_it_adds() -> None:
    lease = people_and_turns.started_turn(text="word " * 400)
    (entry,) = read_path(people_and_turns.conversation_of(lease))
    assert isinstance(entry, ViewMessage)
    assert entry.tokens == Message.objects.get().estimate > 100


def test_what_the_api_was_expected_to_clear_is_known_and_changes_nothing_that_is_sent() -> None:
    played = stored_turns.played()
    conversation = played.conversation
    before = load_state(conversation, stored_turns.MODEL)
    change = api_clearing.build_expectation(
        before.view,
        Gauge(9, "reported", 99),
        api_clearing.Clearing(),
        api_clearing.Cleared(("a", "b"), 5),
    )
    lease = people_and_turns.next_turn(conversation)
    append.record_transformation(
        lease=lease, change=change, policy=PRESETS["native"], summary_call=None
    )
    conversation.refresh_from_db()
    after = load_state(conversation, stored_turns.MODEL).view
    assert after.cleared == ("a", "b")
    assert after.edits == before.view.edits


def test_the_model_that_made_a_block_is_named_by_its_call() -> None:
    played = stored_turns.played()
    conversation = played.conversation
    assert load_state(conversation, stored_turns.MODEL).compacted_by == ""
    lease = people_and_turns.next_turn(conversation)
    call = people_and_turns.opened(lease).call
    conversation.refresh_from_db()
    view = load_state(conversation, stored_turns.MODEL).view
    block = '{"type":"compaction","content":"x","signature":"c2ln"}'
    put = SpliceMessages(0, view.messages[-2].seq, ((0, "answer", f"[{block}]"),))
    change = build_transformation(view, "summary", Trigger(9, 1, "counted"), [put], "note")
    append.record_transformation(
        lease=lease, change=change, policy=PRESETS["native"], summary_call=call
    )
    conversation.refresh_from_db()
    assert load_state(conversation, "another").compacted_by == stored_turns.MODEL


def test_what_was_cleared_counts_in_the_report() -> None:
    lease = people_and_turns.started_turn()
    usage = read_usage(
        {
            "input_tokens": 900,
            "output_tokens": 50,
            "context_management": {"applied_edits": [{"cleared_input_tokens": 4_000}]},
        }
    )
    stored_turns.close(
        lease, people_and_turns.opened(lease).call, people_and_turns.complete(usage=usage)
    )
    report = stored_turns.loaded(lease).report
    assert report is not None
    assert report.tokens == 4_950


def test_of_several_iterations_the_last_is_the_context_as_in_the_turn_itself() -> None:
    def part(kind: str, read: int) -> dict[str, object]:
        return {"type": kind, "input_tokens": read, "output_tokens": 25}

    rows = [part("compaction", 7_000), part("message", 900), part("message", 1_100)]
    usage = read_usage({"input_tokens": 2_000, "output_tokens": 50, "iterations": rows})
    lease = people_and_turns.started_turn()
    stored_turns.close(
        lease, people_and_turns.opened(lease).call, people_and_turns.complete(usage=usage)
    )
    report = stored_turns.loaded(lease).report
    assert report is not None
    assert report.tokens == usage.uncleared + usage.output == 1_150
