"""Turns: one live turn in a conversation, one turn per send, a valid history after any crash."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from conversations.agent.ports import Finish, ToolDone
from conversations.agent.tool_calls import CUT_SHORT
from conversations.audit import verify
from conversations.conf import conf
from conversations.context.view import rules, wire
from conversations.context.view.view import Message as ViewMessage
from conversations.log import append
from conversations.log.leases import Lease, claim_turn
from conversations.models import LIVE, ApiResult, Conversation, Draft, Message, ToolCall, Turn
from conversations.turns import drafts, takeovers, tool_calls, turns
from conversations.turns.prompts import SendError
from conversations.turns.queue import is_waiting
from conversations.turns.takeovers import NOT_RUN
from tests.support import people_and_turns, stored_turns

pytestmark = pytest.mark.django_db


def send(conversation: Conversation, text: str = "Next", client_id: Any = None) -> Turn:
    return turns.send_prompt(conversation=conversation, text=text, client_id=client_id or uuid4())


def refused(code: str) -> Any:
    return pytest.raises(SendError, check=lambda error: error.code == code)


def ended() -> Conversation:
    """Give a conversation whose first turn is done."""
    lease = people_and_turns.started_turn()
    people_and_turns.answered(lease)
    return people_and_turns.conversation_of(lease)


def contents(lease: Lease) -> list[tuple[str, Any]]:
    rows = Message.objects.filter(turn_id=lease.turn_id).order_by("seq")
    return [(row.kind, wire.decode(row.content)) for row in rows]


def still_valid(lease: Lease) -> None:
    """Check the history with another message behind it, and the record of it."""
    prompt = ViewMessage.parse(10_000, "prompt", '[{"type":"text","text":"Go on."}]')
    rules.check_rules(stored_turns.loaded(lease).view.append(prompt))
    key = people_and_turns.conversation_of(lease).public_id
    assert list(verify.verify_conversation(key, verify.Tally())) == []


def crash(lease: Lease) -> Turn:
    turn = takeovers.take_over_turn(turn_id=lease.turn_id, everything=True)
    assert turn is not None
    row = people_and_turns.turn_of(lease)
    assert (row.state, row.finish_reason, row.error_code) == ("interrupted", "crash", "interrupted")
    assert row.ended_at is not None
    assert not Draft.objects.filter(turn=row).exists()
    return row


# Sending.


def test_a_prompt_is_stored_with_its_turn() -> None:
    turn = people_and_turns.queued(people_and_turns.person(), "  Two\r\nlines ")
    (prompt,) = turn.messages.all()
    assert (turn.state, turn.number, prompt.kind) == ("queued", 1, "prompt")
    assert wire.decode(prompt.content) == [{"type": "text", "text": "  Two\nlines "}]
    assert turn.conversation.title == "Two lines"


def test_a_repeated_send_is_the_same_turn() -> None:
    conversation, name = ended(), uuid4()
    first = send(conversation, "Once", name)
    assert send(conversation, "Once", name).pk == first.pk
    assert conversation.turns.count() == 2
    assert Message.objects.filter(kind="prompt").count() == 2


def test_an_id_is_not_used_for_another_text() -> None:
    conversation, name = ended(), uuid4()
    send(conversation, "Once", name)
    before = people_and_turns.everything()
    with refused("reused_id"):
        send(conversation, "Twice", name)
    assert people_and_turns.everything() == before


def test_a_repeated_start_is_the_same_conversation() -> None:
    user, name = people_and_turns.person(), uuid4()

    def start(text: str) -> Turn:
        return turns.start_conversation(
            owner_id=user.pk, model=stored_turns.MODEL, text=text, client_id=name
        )

    assert start("Hello").pk == start("Hello").pk
    with refused("reused_id"):
        start("Another")
    assert Conversation.objects.count() == 1


def test_ids_of_other_people_are_free() -> None:
    name = uuid4()
    for user in (people_and_turns.person("ada"), people_and_turns.person("eve")):
        turns.start_conversation(
            owner_id=user.pk, model=stored_turns.MODEL, text="Hi", client_id=name
        )
    assert Conversation.objects.count() == 2


@pytest.mark.parametrize("state", LIVE)
def test_a_conversation_has_one_live_turn(state: str) -> None:
    turn = people_and_turns.queued(people_and_turns.person())
    Turn.objects.update(state=state)
    assert is_waiting(send(turn.conversation))
    assert turn.conversation.turns.count() == 1
    assert turn.conversation.messages.count() == 1


@pytest.mark.parametrize("text", ["", "  \n\t", "\u2003"])
def test_nothing_but_space_is_no_message(text: str) -> None:
    with refused("empty"):
        people_and_turns.queued(people_and_turns.person(), text)
    assert not Conversation.objects.exists()


def test_a_message_that_is_too_long_is_refused_with_the_limit(settings: Any) -> None:
    settings.AGENTWEB_MAX_PROMPT_CHARS = 1_000
    people_and_turns.queued(people_and_turns.person(), "x" * 1_000)
    with pytest.raises(SendError, match=r"1,001 characters; at most 1,000") as error:
        people_and_turns.queued(people_and_turns.person("bob"), "x" * 1_001)
    assert error.value.code == "too_long"


def test_odd_characters_are_stored_or_replaced_and_never_fail() -> None:
    text = "nul \0 lone \ud800 high \U0010ffff bidi \u202e tag \U000e0041 bom \ufeff"
    turn = people_and_turns.queued(people_and_turns.person(), text)
    (block,) = wire.decode(turn.messages.get().content)
    assert "\ud800" not in block["text"]
    assert block["text"].endswith("bom \ufeff")
    assert "\0" not in turn.conversation.title


def test_a_person_has_so_many_live_turns_and_no_more(settings: Any) -> None:
    settings.AGENTWEB_MAX_LIVE_TURNS = 2
    user = people_and_turns.person()
    people_and_turns.queued(user)
    people_and_turns.queued(user)
    with refused("too_many"):
        people_and_turns.queued(user)
    people_and_turns.queued(people_and_turns.person("eve"))
    assert Conversation.objects.filter(owner=user).count() == 2


@pytest.mark.django_db(transaction=True)
def test_of_fifty_sends_at_once_one_is_a_turn_some_wait_and_no_more_are_taken() -> None:
    conversation = ended()
    found = people_and_turns.crowd(50, lambda at: send(conversation, f"Message {at}").pk)
    errors = people_and_turns.failures(found)
    assert len(errors) == 49 - conf.max_queued_prompts
    assert {getattr(error, "code", repr(error)) for error in errors} == {"queue_full"}
    assert conversation.queued_prompts.count() == conf.max_queued_prompts
    assert conversation.turns.filter(state__in=LIVE).count() == 1
    assert conversation.messages.filter(kind="prompt").count() == 2


@pytest.mark.django_db(transaction=True)
def test_fifty_sends_of_one_id_at_once_are_one_turn() -> None:
    conversation, name = ended(), uuid4()
    found = people_and_turns.crowd(50, lambda _: send(conversation, "Once", name).pk)
    assert people_and_turns.failures(found) == []
    assert len(set(map(str, found))) == 1
    assert conversation.turns.count() == 2


@pytest.mark.django_db(transaction=True)
def test_parallel_starts_of_one_id_are_one_conversation() -> None:
    user, name = people_and_turns.person(), uuid4()

    def start(_: int) -> int:
        turn = turns.start_conversation(
            owner_id=user.pk, model=stored_turns.MODEL, text="Hi", client_id=name
        )
        return turn.pk

    assert len(set(map(str, people_and_turns.crowd(12, start)))) == 1
    assert Conversation.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_the_cap_on_live_turns_holds_in_parallel(settings: Any) -> None:
    settings.AGENTWEB_MAX_LIVE_TURNS = 3
    user = people_and_turns.person()
    errors = people_and_turns.failures(
        people_and_turns.crowd(16, lambda _: people_and_turns.queued(user).pk)
    )
    assert {getattr(error, "code", repr(error)) for error in errors} == {"too_many"}
    assert Turn.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_sends_do_not_disturb_the_worker_of_the_turn_they_wait_for() -> None:
    lease = people_and_turns.started_turn()
    conversation = people_and_turns.conversation_of(lease)

    def play(at: int) -> None:
        if at:
            assert is_waiting(send(conversation))
            return
        for turn in range(6):
            stored_turns.close(
                lease,
                people_and_turns.opened(lease).call,
                people_and_turns.tool_call_ending(f"t{turn}"),
            )
            append.store_results(
                lease=lease, content=people_and_turns.results(f"t{turn}"), estimate=1
            )

    assert (
        people_and_turns.failures(people_and_turns.crowd(1 + conf.max_queued_prompts, play)) == []
    )


# Stopping.


def test_a_turn_that_nobody_started_is_cancelled_at_once() -> None:
    turn = people_and_turns.queued(people_and_turns.person())
    turns.request_stop(turn=turn)
    turn.refresh_from_db()
    assert (turn.state, turn.finish_reason) == ("cancelled", "stopped")
    assert turn.ended_at is not None
    assert claim_turn(turn_id=turn.pk, owner="late") is None
    assert takeovers.list_claimable_turns() == []
    send(turn.conversation)


def test_a_running_turn_is_asked_and_the_first_moment_stands() -> None:
    lease = people_and_turns.started_turn()
    turns.request_stop(turn=people_and_turns.turn_of(lease))
    first = people_and_turns.turn_of(lease)
    assert first.state == "running"
    assert first.stop_requested_at is not None
    turns.request_stop(turn=first)
    assert people_and_turns.turn_of(lease).stop_requested_at == first.stop_requested_at


def test_stopping_what_has_ended_changes_nothing() -> None:
    played = stored_turns.played()
    before = people_and_turns.everything()
    turns.request_stop(turn=played.turn)
    assert people_and_turns.everything() == before


# Ending.


def test_an_ended_turn_says_how() -> None:
    lease = people_and_turns.started_turn()
    people_and_turns.opened(lease)
    drafts.save_draft(lease=lease, text="x", thinking="")
    finish = Finish("failed", "budget", "budget", "No more.\nUntil December.")
    turns.finish_turn(lease=lease, finish=finish)
    row = people_and_turns.turn_of(lease)
    assert (row.state, row.finish_reason, row.error_code) == ("failed", "budget", "budget")
    assert row.error_text == "No more.\nUntil December."
    assert row.ended_at is not None
    assert not Draft.objects.exists()


def test_a_draft_that_is_too_late_for_a_good_end_is_dropped_without_an_error() -> None:
    lease = people_and_turns.started_turn()
    people_and_turns.answered(lease)
    before = people_and_turns.everything()
    drafts.save_draft(lease=lease, text="x", thinking="")
    assert people_and_turns.everything() == before


# Crashes.


def test_a_crash_before_the_first_call_leaves_the_prompt() -> None:
    lease = people_and_turns.started_turn()
    crash(lease)
    assert [kind for kind, _ in contents(lease)] == ["prompt"]
    still_valid(lease)


def test_a_crash_in_mid_answer_keeps_what_was_shown_and_marks_the_call_lost() -> None:
    lease = people_and_turns.started_turn()
    people_and_turns.limited(people_and_turns.turn_of(lease).conversation.owner, 50_000_000)
    call = people_and_turns.opened(lease).call
    drafts.save_draft(lease=lease, text="The first half\ud800", thinking="hm")
    crash(lease)
    assert contents(lease)[1:] == [("answer", [{"type": "text", "text": "The first half\ufffd"}])]
    result = ApiResult.objects.get(call_id=call)
    assert (result.status, result.cost_basis) == ("lost", "estimated")
    assert result.cost_micros > 0
    still_valid(lease)


def test_an_end_while_tools_run_answers_every_call() -> None:
    lease = people_and_turns.started_turn()
    stored_turns.close(
        lease,
        people_and_turns.opened(lease).call,
        people_and_turns.tool_call_ending("done", "failed", "cut", "later"),
    )
    for name in ("done", "failed", "cut"):
        tool_calls.start_tool(lease=lease, tool_use_id=name)
    tool_calls.finish_tool(lease=lease, tool_use_id="done", done=ToolDone('"ok"', "ok"))
    tool_calls.finish_tool(lease=lease, tool_use_id="failed", done=ToolDone('"no"', "error"))
    turns.finish_turn(lease=lease, finish=Finish("failed", "", "internal", "Broken."))
    kind, blocks = contents(lease)[-1]
    assert kind == "results"
    assert [(b["tool_use_id"], b["content"], b.get("is_error", False)) for b in blocks] == [
        ("done", "ok", False),
        ("failed", "no", True),
        ("cut", CUT_SHORT, True),
        ("later", NOT_RUN, True),
    ]
    states = dict(ToolCall.objects.values_list("tool_use_id", "state"))
    assert states == {"done": "ok", "failed": "error", "cut": "unknown", "later": "cancelled"}
    still_valid(lease)


@pytest.mark.parametrize("state", ["queued", "approval_wait", "done", "failed", "cancelled"])
def test_a_turn_that_no_worker_has_is_not_interrupted(state: str) -> None:
    lease = people_and_turns.started_turn()
    Turn.objects.update(state=state, lease_until=timezone.now() - timedelta(hours=1))
    before = people_and_turns.everything()
    assert takeovers.take_over_turn(turn_id=lease.turn_id, everything=True) is None
    assert takeovers.list_expired_turns(everything=True) == []
    assert people_and_turns.everything() == before


def test_a_turn_is_interrupted_only_when_its_lease_is_over() -> None:
    lease = people_and_turns.started_turn()
    assert takeovers.list_expired_turns() == []
    assert takeovers.take_over_turn(turn_id=lease.turn_id) is None
    Turn.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert takeovers.list_expired_turns() == [lease.turn_id]
    assert takeovers.take_over_turn(turn_id=lease.turn_id) is not None
    assert takeovers.take_over_turn(turn_id=lease.turn_id) is None


@pytest.mark.parametrize("hours", [-2, 2])
def test_leases_follow_the_clock_of_the_database(hours: int, monkeypatch: Any) -> None:
    lease = people_and_turns.started_turn()
    shifted = timezone.now() + timedelta(hours=hours)
    monkeypatch.setattr(timezone, "now", lambda: shifted)
    assert takeovers.list_expired_turns() == []
    assert takeovers.take_over_turn(turn_id=lease.turn_id) is None


@pytest.mark.django_db(transaction=True)
def test_many_sweeps_interrupt_a_turn_once() -> None:
    lease = people_and_turns.started_turn()
    people_and_turns.opened(lease)
    drafts.save_draft(lease=lease, text="half", thinking="")
    found = people_and_turns.crowd(
        8, lambda _: takeovers.take_over_turn(turn_id=lease.turn_id, everything=True) is not None
    )
    assert sorted(map(str, found)) == ["False"] * 7 + ["True"]
    assert [kind for kind, _ in contents(lease)] == ["prompt", "answer"]
    still_valid(lease)
