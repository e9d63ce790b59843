"""Asking a person: what asks, what is shown is what is allowed, one decision by the owner."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import DatabaseError, transaction
from django.utils import timezone

from conversations.agent.answer import ToolUse
from conversations.agent.approval_rules import ApprovalQuestion
from conversations.agent.ports import ToolDone
from conversations.agent.stop import Stopped
from conversations.audit import verify
from conversations.context.view import wire
from conversations.library.conversations import delete_conversation
from conversations.library.sidebar import read_sidebar
from conversations.log import leases
from conversations.log.leases import Lease
from conversations.log.turn_state import load_state
from conversations.models import Approval, Conversation, Decision, Message, ToolCall, Turn
from conversations.toolbox import approvals
from conversations.toolbox.approval_checks import CHANGED, DENIED, EXPIRED
from conversations.toolbox.approvals import ApprovalError
from conversations.transcript.questions import list_open_questions
from conversations.turns import takeovers, tool_calls, turns
from conversations.turns.prompts import SendError
from conversations.turns.queue import is_waiting
from tests.support import people_and_turns, toy_tools
from tests.support.approval_turns import FIRE, POST, calling, check, done, uses, waiting_turn
from tests.support.damaged_rows import put_bytes, unguarded

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _toys(monkeypatch: Any, tmp_path: Path) -> None:
    toy_tools.install(monkeypatch, tmp_path / "ran")


def decide(question: Approval, verdict: str = "once", **fields: Any) -> Turn:
    specs: dict[str, Any] = {
        "conversation": question.conversation,
        "approval_id": question.pk,
        "digest": question.arguments_digest,
        "verdict": verdict,
        "actor_id": question.conversation.owner_id,
    }
    return approvals.decide_approval(**specs | fields)


def again(lease: Lease) -> Lease:
    found = leases.claim_turn(turn_id=lease.turn_id, owner="another")
    assert found is not None
    return found


def refused(code: str) -> Any:
    return pytest.raises(ApprovalError, check=lambda error: error.code == code)


# Waiting.


def test_a_turn_that_asks_is_given_back_and_holds_nothing() -> None:
    lease, (question,) = waiting_turn(POST)
    row = people_and_turns.turn_of(lease)
    assert (row.state, row.lease_owner, row.lease_until) == ("approval_wait", "", None)
    assert takeovers.list_claimable_turns() == takeovers.list_expired_turns(everything=True) == []
    assert leases.claim_turn(turn_id=lease.turn_id, owner="x") is None
    assert (question.reason, question.destination) == ("write", "mail:a@b.example")
    assert question.arguments_digest == wire.digest(wire.encode(POST[2]))
    with pytest.raises(Stopped):
        tool_calls.start_tool(lease=lease, tool_use_id="p")


def test_turns_that_ask_hold_no_other_conversation_up(settings: Any) -> None:
    settings.AGENTWEB_MAX_LIVE_TURNS = 1
    lease, _ = waiting_turn(POST)
    owner = people_and_turns.turn_of(lease).conversation.owner
    other = people_and_turns.started_turn(owner, "Another")
    people_and_turns.answered(other)
    people_and_turns.next_turn(people_and_turns.conversation_of(other))
    with pytest.raises(SendError, match="Too many answers"):
        people_and_turns.started_turn(owner, "A third")


def test_messages_that_are_sent_meanwhile_wait() -> None:
    lease, _ = waiting_turn(FIRE)
    conversation = people_and_turns.conversation_of(lease)
    assert is_waiting(
        turns.send_prompt(conversation=conversation, text="And this", client_id=uuid4())
    )


def test_a_stop_while_it_waits_ends_the_turn_with_a_valid_history() -> None:
    lease, (question,) = waiting_turn(FIRE)
    turns.request_stop(turn=people_and_turns.turn_of(lease))
    row = people_and_turns.turn_of(lease)
    assert (row.state, row.finish_reason) == ("cancelled", "stopped")
    assert row.ended_at is not None
    assert ToolCall.objects.get().state == "cancelled"
    assert Message.objects.filter(turn=row).latest("seq").kind == "results"
    with refused("over"):
        decide(question)
    people_and_turns.answered(people_and_turns.next_turn(people_and_turns.conversation_of(lease)))


def test_a_stop_that_came_before_the_question_is_heard() -> None:
    lease = people_and_turns.started_turn()
    found = check(lease, calling(lease, FIRE))
    turns.request_stop(turn=people_and_turns.turn_of(lease))
    with pytest.raises(Stopped, match="user"):
        approvals.ask_person(lease=lease, questions=[found["f"]])  # type: ignore[list-item]
    assert not Approval.objects.exists()
    assert people_and_turns.turn_of(lease).state == "tool_wait"


def test_the_list_says_who_waits_for_the_person() -> None:
    lease, _ = waiting_turn(FIRE)
    conversation = people_and_turns.conversation_of(lease)
    (group,) = read_sidebar(conversation.owner).groups
    assert group[1][0].is_waiting


def test_a_question_shows_every_argument_whole_and_every_character() -> None:
    text = "Dear all,\n" + "x" * 50_000 + "\u202egnp\u200b\U000e0041 end"
    lease, _ = waiting_turn(("p", "post", {"to": "a@b\u2066.example", "text": text}))
    ((question,),) = list_open_questions([people_and_turns.turn_of(lease)]).values()
    arguments = {name: "".join(text for text, _ in pieces) for name, pieces in question.arguments}
    assert arguments["text"].startswith("Dear all,\n" + "x" * 50_000)
    assert arguments["text"].endswith("⟨U+202E⟩gnp⟨U+200B⟩⟨U+E0041⟩ end")
    assert arguments["to"] == "a@b⟨U+2066⟩.example"
    assert (question.receiver, question.destination) == ("mail", "a@b⟨U+2066⟩.example")


# Deciding.


@pytest.mark.parametrize("verdict", ["once", "chat"])
def test_an_allowed_call_runs_once_and_the_turn_goes_on(verdict: str) -> None:
    lease, (question,) = waiting_turn(POST)
    assert decide(question, verdict).state == "tool_wait"
    assert takeovers.list_claimable_turns() == [lease.turn_id]
    fresh = again(lease)
    assert people_and_turns.turn_of(fresh).takeovers == 0
    assert check(fresh, uses(POST)) == {}
    done(fresh, "p")
    people_and_turns.answered(fresh)


def test_a_denied_call_is_told_so_and_the_turn_goes_on() -> None:
    lease, (question,) = waiting_turn(FIRE)
    decide(question, "denied")
    verdict = check(again(lease), uses(FIRE))["f"]
    assert isinstance(verdict, ToolDone)
    assert (verdict.state, wire.decode(verdict.content)) == ("denied", DENIED)


def test_the_last_decision_of_several_lets_the_turn_go_on() -> None:
    lease, (first, second) = waiting_turn(FIRE, POST)
    assert decide(first).state == "approval_wait"
    assert takeovers.list_claimable_turns() == []
    assert decide(second, "denied").state == "tool_wait"
    assert takeovers.list_claimable_turns() == [lease.turn_id]


def test_an_unanswered_question_counts_as_no() -> None:
    lease, (question,) = waiting_turn(FIRE, text="x")
    assert approvals.list_turns_with_late_questions() == []
    assert approvals.expire_approvals(turn_id=lease.turn_id) is None
    _late()
    assert approvals.list_turns_with_late_questions() == [lease.turn_id]
    with refused("over"):
        decide(Approval.objects.get())
    turn = approvals.expire_approvals(turn_id=lease.turn_id)
    assert turn is not None
    assert turn.state == "tool_wait"
    decision = Decision.objects.get(approval=question)
    assert (decision.verdict, decision.actor) == ("expired", None)
    verdict = check(again(lease), uses(FIRE))["f"]
    assert isinstance(verdict, ToolDone)
    assert wire.decode(verdict.content) == EXPIRED
    assert approvals.expire_approvals(turn_id=lease.turn_id) is None


def _late() -> None:
    """Let the time of all questions be over, past their guards."""
    from conversations.log import triggers

    table = Approval._meta.db_table
    from django.db import connection

    where = f' ON "{table}"' if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(f'DROP TRIGGER IF EXISTS "{table}_keep_update"{where}')
    Approval.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    triggers.install_guards()


# What was allowed for the conversation.


def test_what_was_allowed_for_the_conversation_is_not_asked_there_again() -> None:
    lease, (question,) = waiting_turn(POST)
    decide(question, "chat")
    fresh = again(lease)
    done(fresh, "p")
    other = ("q", "post", {"to": "a@b.example", "text": "Other words"})
    elsewhere = ("r", "post", {"to": "eve@b.example"})
    assert list(check(fresh, calling(fresh, other, elsewhere, FIRE))) == ["r", "f"]
    another = people_and_turns.started_turn(people_and_turns.person("eve"))
    assert "q" in check(another, calling(another, other))


def test_what_is_allowed_for_the_conversation_answers_the_same_questions_of_the_answer() -> None:
    same = ("q", "post", {"to": "a@b.example", "text": "Other words"})
    elsewhere = ("r", "post", {"to": "eve@b.example"})
    lease, (first, second, third, fourth) = waiting_turn(POST, same, elsewhere, FIRE)
    assert decide(first, "chat").state == "approval_wait"
    verdicts = dict(Decision.objects.values_list("approval", "verdict"))
    assert verdicts == {first.pk: "chat", second.pk: "chat"}
    with refused("decided"):
        decide(second, "denied")
    decide(third, "denied")
    assert decide(fourth, "denied").state == "tool_wait"
    assert set(check(again(lease), uses(POST, same, elsewhere, FIRE))) == {"r", "f"}
    key = people_and_turns.conversation_of(lease).public_id
    assert list(verify.verify_conversation(key, verify.Tally())) == []


@pytest.mark.parametrize("verdict", ["once", "denied"])
def test_a_decision_on_one_call_is_none_on_its_like(verdict: str) -> None:
    lease, (first, second) = waiting_turn(POST, ("q", *POST[1:]))
    assert decide(first, verdict).state == "approval_wait"
    assert not Decision.objects.filter(approval=second).exists()
    assert people_and_turns.turn_of(lease).lease_until is None


def test_what_was_allowed_once_is_asked_again() -> None:
    lease, (question,) = waiting_turn(FIRE)
    decide(question, "once")
    fresh = again(lease)
    done(fresh, "f")
    assert "g" in check(fresh, calling(fresh, ("g", "fire", {})))


# What is refused.


def test_a_call_is_decided_once() -> None:
    lease, (question, _) = waiting_turn(FIRE, POST)
    decide(question, "denied")
    before = people_and_turns.everything()
    with refused("decided"):
        decide(question, "once")
    with refused("decided"):
        decide(question, "denied")
    assert people_and_turns.everything() == before
    turns.request_stop(turn=people_and_turns.turn_of(lease))


def test_a_call_that_was_never_asked_about_cannot_be_allowed() -> None:
    _, (question,) = waiting_turn(FIRE)
    with refused("unknown"):
        decide(question, approval_id=question.pk + 1)


def test_a_call_of_another_person_cannot_be_allowed() -> None:
    _, (question,) = waiting_turn(FIRE)
    mine = people_and_turns.started_turn(people_and_turns.person("eve"))
    with refused("unknown"):
        decide(question, conversation=people_and_turns.conversation_of(mine))
    assert not Decision.objects.exists()


def test_arguments_that_are_not_those_shown_cannot_be_allowed() -> None:
    lease, (question,) = waiting_turn(POST)
    with refused("changed"):
        decide(question, digest=wire.digest("{}"))
    ToolCall.objects.update(input='{"to":"eve@b.example"}')
    with refused("changed"):
        decide(question)
    ToolCall.objects.update(input=wire.encode(POST[2]))
    decide(question)
    other = (ToolUse("p", "post", '{"to":"eve@b.example"}'),)
    verdict = check(again(lease), other)["p"]
    assert isinstance(verdict, ToolDone)
    assert wire.decode(verdict.content) == CHANGED


@pytest.mark.django_db(transaction=True)
def test_of_many_decisions_at_once_one_counts() -> None:
    _, (question,) = waiting_turn(FIRE)
    found = people_and_turns.crowd(
        8, lambda at: decide(question, "once" if at % 2 else "denied").pk
    )
    assert {getattr(error, "code", "") for error in people_and_turns.failures(found)} == {"decided"}
    assert Decision.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_decisions_stops_messages_and_throwing_away_at_once_leave_one_whole_turn() -> None:
    lease, questions = waiting_turn(FIRE, POST)
    conversation, turn = people_and_turns.conversation_of(lease), people_and_turns.turn_of(lease)

    def act(at: int) -> None:
        match at % 5:
            case 0 | 1:
                decide(questions[at % 5], "chat")
            case 2:
                turns.request_stop(turn=turn)
            case 3:
                turns.send_prompt(conversation=conversation, text="And", client_id=uuid4())
            case _:
                delete_conversation(conversation=conversation)

    for error in people_and_turns.failures(people_and_turns.crowd(10, act)):
        assert isinstance(error, ApprovalError | SendError)
    row = people_and_turns.turn_of(lease)
    # A stop that came behind the last decision is heard by the worker that goes on.
    assert row.state == "cancelled" or (row.state == "tool_wait" and row.stop_requested_at)
    calls = {call.state for call in row.tool_calls.all()}
    assert calls == {"cancelled" if row.state == "cancelled" else "planned"}
    assert list(verify.verify_conversation(conversation.public_id, verify.Tally())) == []


def test_question_and_decision_stand_in_the_record_for_good() -> None:
    lease, (question,) = waiting_turn(FIRE)
    decide(question)
    key = people_and_turns.conversation_of(lease).public_id
    assert list(verify.verify_conversation(key, verify.Tally())) == []
    for row in (Approval, Decision):
        with pytest.raises(DatabaseError), transaction.atomic():
            row.objects.update(link=7)
        with pytest.raises(DatabaseError), transaction.atomic():
            row.objects.all().delete()


def test_a_question_that_was_put_is_not_put_twice() -> None:
    lease, (question,) = waiting_turn(FIRE)
    Turn.objects.update(state="tool_wait")
    fresh = again(lease)
    verdict = check(fresh, uses(FIRE))["f"]
    assert isinstance(verdict, ApprovalQuestion)
    approvals.ask_person(lease=fresh, questions=[verdict])
    assert list(Approval.objects.all()) == [question]
    assert people_and_turns.turn_of(fresh).state == "approval_wait"
    assert Conversation.objects.count() == 1


@pytest.mark.parametrize(
    ("verdict", "kept"), [("once", ()), ("chat", ("chat",)), ("denied", ("denied",))]
)
def test_the_context_engine_learns_what_was_denied_or_allowed_for_good(
    verdict: str, kept: tuple[str, ...]
) -> None:
    _, (question,) = waiting_turn(POST)
    decide(question, verdict)
    found = load_state(question.conversation, "any").decisions
    assert found == tuple((question.call.tool_use_id, each) for each in kept)


def put_half(call: ToolCall) -> None:
    with unguarded():
        ToolCall.objects.filter(pk=call.pk).update(input='{"to":"a@b.example"')


def put_other_bytes(call: ToolCall) -> None:
    put_bytes(call, "input")


@pytest.mark.parametrize(
    "damage",
    [
        put_half,
        pytest.param(
            put_other_bytes,
            marks=pytest.mark.only_database("sqlite", "PostgreSQL stores no other bytes"),
        ),
    ],
)
def test_a_call_that_cannot_be_read_is_asked_about_without_arguments_and_not_allowed(
    damage: Callable[[ToolCall], None],
) -> None:
    lease, [question] = waiting_turn(POST)
    damage(question.call)
    [shown] = list_open_questions([Turn.objects.get(pk=lease.turn_id)])[lease.turn_id]
    assert (shown.tool, shown.arguments) == ("post", ())
    with pytest.raises(ApprovalError, match="not the arguments that were asked about"):
        decide(question)
