"""A turn whose worker died between two calls goes on, repeats no write, and not for ever."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from conversations.agent.ports import Finish, ToolDone
from conversations.agent.resume import TurnProgress
from conversations.agent.stop import Stopped
from conversations.log import append, leases
from conversations.log.leases import Lease, claim_turn
from conversations.models import ApiResult, Draft, ToolCall, Turn
from conversations.turns import calls, drafts, takeovers, tool_calls, turns
from conversations.turns.billed_usage import Timing
from conversations.turns.resume import load_progress
from conversations.turns.takeovers import NOT_RUN
from tests.support import people_and_turns, stored_turns

pytestmark = pytest.mark.django_db


def turn_with_calls(*names: str, effect: str = "read") -> Lease:
    """Give a turn whose answer calls these tools, each under its name."""
    lease = people_and_turns.started_turn()
    answers(lease, *names, effect=effect)
    return lease


def answers(lease: Lease, *names: str, effect: str = "read") -> None:
    calls.close_call(
        lease=lease,
        call_id=people_and_turns.opened(lease).call,
        ending=people_and_turns.tool_call_ending(*names),
        timing=Timing(1, 2),
        effects={"list_files": effect},
    )


def let_lease_end(lease: Lease) -> Turn:
    turn = takeovers.take_over_turn(turn_id=lease.turn_id, everything=True)
    assert turn is not None
    return turn


def taken_over(lease: Lease) -> Lease:
    assert takeovers.list_claimable_turns() == [lease.turn_id]
    found = claim_turn(turn_id=lease.turn_id, owner="another")
    assert found is not None
    assert takeovers.list_claimable_turns() == []
    return found


def test_a_turn_between_two_calls_is_claimed_again_under_a_new_generation() -> None:
    lease = turn_with_calls("t1")
    turn = let_lease_end(lease)
    assert (turn.state, turn.lease_until, turn.lease_owner) == ("tool_wait", None, "")
    again = taken_over(lease)
    assert again.generation > lease.generation
    assert people_and_turns.turn_of(lease).state == "tool_wait"
    with pytest.raises(Stopped):
        tool_calls.start_tool(lease=lease, tool_use_id="t1")
    tool_calls.start_tool(lease=again, tool_use_id="t1")


def test_a_turn_whose_results_are_stored_goes_on_without_its_tools() -> None:
    lease = turn_with_calls("t1")
    tool_calls.finish_tool(lease=lease, tool_use_id="t1", done=ToolDone('"x"', "ok"))
    append.store_results(lease=lease, content=people_and_turns.results("t1"), estimate=1)
    assert let_lease_end(lease).state == "running"
    taken_over(lease)
    found = load_progress(lease.turn_id)
    assert found.open is None
    assert (found.first, found.rounds, found.tool_calls, found.ids) == (1, 1, 1, {"t1"})


def test_a_turn_that_waits_to_ask_again_goes_on_at_once() -> None:
    lease = turn_with_calls("t1")
    append.store_results(lease=lease, content=people_and_turns.results("t1"), estimate=1)
    leases.start_backoff(lease=lease, attempt=2, seconds=50)
    turn = let_lease_end(lease)
    assert (turn.state, turn.retry_at) == ("running", None)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_turn_that_died_while_it_showed_an_answer_is_interrupted(is_first: bool) -> None:
    lease = people_and_turns.started_turn() if is_first else turn_with_calls("t1")
    if not is_first:
        append.store_results(lease=lease, content=people_and_turns.results("t1"), estimate=1)
    people_and_turns.opened(lease)
    drafts.save_draft(lease=lease, text="Here", thinking="")
    assert let_lease_end(lease).state == "interrupted"
    assert takeovers.list_claimable_turns() == []


def test_a_turn_that_died_before_its_first_answer_is_interrupted() -> None:
    lease = people_and_turns.started_turn()
    people_and_turns.opened(lease)
    assert let_lease_end(lease).state == "interrupted"


def test_a_turn_asks_again_behind_its_tools_where_nothing_of_the_answer_was_shown() -> None:
    lease = turn_with_calls("t1")
    append.store_results(lease=lease, content=people_and_turns.results("t1"), estimate=1)
    sent = people_and_turns.opened(lease)
    assert let_lease_end(lease).state == "running"
    assert ApiResult.objects.get(call_id=sent.call).status == "lost"
    people_and_turns.opened(taken_over(lease))


def test_what_is_known_of_each_call_is_known_to_the_next_worker() -> None:
    lease = turn_with_calls("done", "cut", "later", effect="write")
    for name in ("done", "cut"):
        tool_calls.start_tool(lease=lease, tool_use_id=name)
    done = ToolDone('"no such"', "error", {"code": "bad_input"}, is_wrong=True)
    tool_calls.finish_tool(lease=lease, tool_use_id="done", done=done)
    let_lease_end(lease)
    found = load_progress(lease.turn_id).open
    assert found is not None
    assert [use.id for use in found.uses] == ["done", "cut", "later"]
    assert found.done == {"done": done}
    assert found.started == {"cut": "write"}


def test_an_unread_input_stays_unread_for_the_next_worker() -> None:
    lease = turn_with_calls("t1")
    ToolCall.objects.update(flaw="not an object")
    found = load_progress(lease.turn_id).open
    assert found is not None
    assert found.uses[0].flaw == "not an object"


def test_wrong_rounds_in_a_row_are_counted_over_a_takeover() -> None:
    lease = people_and_turns.started_turn()
    for at, code in enumerate(("bad_input", "timeout", "unknown_tool", "bad_input")):
        answers(lease, f"t{at}")
        failed = ToolDone('"no"', "error", {"code": code})
        tool_calls.finish_tool(lease=lease, tool_use_id=f"t{at}", done=failed)
        append.store_results(lease=lease, content=people_and_turns.results(f"t{at}"), estimate=1)
    found = load_progress(lease.turn_id)
    assert (found.wrong, found.rounds, found.tool_calls) == (2, 4, 4)


def test_a_turn_that_nobody_has_run_has_done_nothing() -> None:
    assert load_progress(people_and_turns.queued(people_and_turns.person()).pk) == TurnProgress()


@pytest.mark.parametrize("effect", ["read", "keyed", "write"])
def test_a_call_leaves_twice_only_where_that_changes_nothing(effect: str) -> None:
    lease = turn_with_calls("t1", effect=effect)
    key = tool_calls.start_tool(lease=lease, tool_use_id="t1")
    let_lease_end(lease)
    again = taken_over(lease)
    if effect == "write":
        with pytest.raises(Stopped):
            tool_calls.start_tool(lease=again, tool_use_id="t1")
    else:
        assert tool_calls.start_tool(lease=again, tool_use_id="t1") == key


def test_a_key_names_one_call_of_one_turn() -> None:
    one = turn_with_calls("t1", "t2")
    keys = {tool_calls.start_tool(lease=one, tool_use_id=name) for name in ("t1", "t2")}
    other = people_and_turns.started_turn(people_and_turns.person("eve"))
    answers(other, "t1")
    keys.add(tool_calls.start_tool(lease=other, tool_use_id="t1"))
    assert len(keys) == 3
    assert {len(key) for key in keys} == {64}


def test_a_turn_that_its_workers_die_of_is_given_up() -> None:
    lease = turn_with_calls("t1")
    for _ in range(takeovers.MOST_TAKEOVERS):
        let_lease_end(lease)
        lease = taken_over(lease)
    turn = let_lease_end(lease)
    assert (turn.state, turn.finish_reason, turn.error_code) == ("failed", "poison", "poison")
    assert takeovers.list_claimable_turns() == []
    (call,) = ToolCall.objects.select_related("output")
    assert call.state == "cancelled"
    assert call.output is not None
    assert NOT_RUN in call.output.text
    assert turns.send_prompt(
        conversation=people_and_turns.conversation_of(lease), text="On", client_id=uuid4()
    )


def test_the_time_of_dead_workers_counts_and_the_time_between_does_not() -> None:
    lease = turn_with_calls("t1")
    claimed_at = timezone.now() - timedelta(hours=2)
    last_heartbeat = claimed_at + timedelta(seconds=100)
    Turn.objects.update(
        claimed_at=claimed_at, lease_until=last_heartbeat + leases.read_lease_duration()
    )
    let_lease_end(lease)
    again = taken_over(lease)
    assert again.ran_seconds == pytest.approx(100, abs=0.01)
    let_lease_end(again)
    assert 100 <= taken_over(lease).ran_seconds < 130


def test_a_late_draft_is_not_shown_beside_the_answer_that_was_stored() -> None:
    lease = turn_with_calls("t1")
    Draft.objects.create(turn_id=lease.turn_id, text="Let me look.")
    let_lease_end(lease)
    assert not Draft.objects.exists()


def test_a_turn_that_waits_for_a_worker_is_not_taken_over_again() -> None:
    lease = turn_with_calls("t1")
    let_lease_end(lease)
    assert takeovers.list_expired_turns(everything=True) == []
    assert takeovers.take_over_turn(turn_id=lease.turn_id, everything=True) is None


@pytest.mark.django_db(transaction=True)
def test_of_many_workers_one_goes_on_with_a_turn() -> None:
    lease = turn_with_calls("t1")
    let_lease_end(lease)
    found = people_and_turns.crowd(8, lambda at: claim_turn(turn_id=lease.turn_id, owner=f"w{at}"))
    assert people_and_turns.failures(found) == []
    assert sum(one is not None for one in found) == 1


def test_a_worker_that_gave_its_turn_up_writes_no_more() -> None:
    lease = turn_with_calls("t1")
    let_lease_end(lease)
    with pytest.raises(Stopped):
        drafts.save_draft(lease=lease, text="late", thinking="")
    with pytest.raises(Stopped):
        turns.finish_turn(lease=lease, finish=Finish("done", "end_turn"))
    assert stored_turns.loaded(lease).view.messages[-1].kind == "answer"
