"""Leases: one worker may write for a turn; one that lost its lease writes nothing at all."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from conversations.agent.ports import Finish, ToolDone
from conversations.agent.stop import Stopped
from conversations.context.policy.policy import Policy
from conversations.context.view import edits
from conversations.context.view.edits import Trigger
from conversations.log import append, leases
from conversations.log.leases import Lease, hold_lease
from conversations.models import ALLOWED, LIVE, Draft, Turn, TurnState
from conversations.turns import calls, drafts, takeovers, tool_calls, turns
from conversations.turns.billed_usage import Timing
from tests.support import people_and_turns, stored_turns

pytestmark = pytest.mark.django_db


def _record(lease: Lease) -> None:
    view = stored_turns.loaded(lease).view
    trigger = Trigger(2, 1, "estimated", "input_token_budget")
    change = edits.build_unapplied(view, "summary", trigger, "rejected", "longer")
    append.record_transformation(lease=lease, change=change, policy=Policy(), summary_call=None)


def _close(lease: Lease) -> None:
    calls.close_call(
        lease=lease,
        call_id=_call(lease),
        ending=people_and_turns.complete(),
        timing=Timing(1, 2),
        effects={},
    )


def _call(lease: Lease) -> int:
    return stored_turns.last_call(people_and_turns.conversation_of(lease)).pk


WRITES: dict[str, Callable[[Lease], Any]] = {
    "open_call": lambda lease: calls.open_call(
        lease=lease, sending=people_and_turns.sending(lease)
    ),
    "close_call": _close,
    "store_results": lambda lease: append.store_results(lease=lease, content="[]", estimate=1),
    "record_transformation": _record,
    "start_tool": lambda lease: tool_calls.start_tool(lease=lease, tool_use_id="t1"),
    "finish_tool": lambda lease: tool_calls.finish_tool(
        lease=lease, tool_use_id="t1", done=ToolDone('"x"', "ok")
    ),
    "save_draft": lambda lease: drafts.save_draft(lease=lease, text="so far", thinking=""),
    "finish_turn": lambda lease: turns.finish_turn(lease=lease, finish=Finish("done")),
    "cancel_turn": lambda lease: turns.finish_turn(lease=lease, finish=Finish("cancelled")),
    "renew_lease": lambda lease: leases.renew_lease(lease=lease),
    "back_off": lambda lease: leases.start_backoff(lease=lease, attempt=2, seconds=1),
    "go_on": lambda lease: leases.end_backoff(lease=lease, attempt=2),
}


def busy() -> Lease:
    """Give the lease of a turn with an open call and a planned tool."""
    lease = people_and_turns.started_turn()
    people_and_turns.limited(people_and_turns.turn_of(lease).conversation.owner, 50_000_000)
    stored_turns.close(
        lease, people_and_turns.opened(lease).call, people_and_turns.tool_call_ending("t1")
    )
    append.store_results(lease=lease, content=people_and_turns.results("t1"), estimate=1)
    people_and_turns.opened(lease)
    return lease


@pytest.mark.parametrize("name", WRITES)
def test_each_write_of_a_worker_works_while_its_lease_stands(name: str) -> None:
    lease = busy()
    before = people_and_turns.everything()
    WRITES[name](lease)
    assert people_and_turns.everything() != before


def test_a_fenced_worker_writes_nothing() -> None:
    lease = busy()
    Turn.objects.filter(pk=lease.turn_id).update(lease_generation=lease.generation + 1)
    writes_nothing(lease)


def test_a_draft_goes_on_in_one_statement_and_only_under_its_lease(
    django_assert_num_queries: Any,
) -> None:
    lease = busy()
    drafts.save_draft(lease=lease, text="Here", thinking="")
    with django_assert_num_queries(1):
        drafts.save_draft(lease=lease, text="Here you", thinking="hm")
    Turn.objects.filter(pk=lease.turn_id).update(lease_generation=lease.generation + 1)
    with pytest.raises(Stopped, match="lease"):
        drafts.save_draft(lease=lease, text="Here you are", thinking="")
    draft = Draft.objects.get()
    assert (draft.text, draft.thinking) == ("Here you", "hm")


def test_a_worker_whose_turn_was_interrupted_writes_nothing() -> None:
    lease = busy()
    assert takeovers.take_over_turn(turn_id=lease.turn_id, everything=True) is not None
    writes_nothing(lease)


def writes_nothing(lease: Lease) -> None:
    before = people_and_turns.everything()
    for name, write in WRITES.items():
        with pytest.raises(Stopped, match="lease"):
            write(lease)
        assert people_and_turns.everything() == before, name


@pytest.mark.parametrize("old", TurnState.values)
def test_a_state_is_entered_only_from_those_that_allow_it(old: str) -> None:
    lease = people_and_turns.started_turn()
    for new in TurnState.values:
        Turn.objects.update(state=old)
        try:
            hold_lease(lease, state=new)
        except Stopped:
            assert not is_allowed(old, new)
        else:
            assert is_allowed(old, new)
        assert people_and_turns.turn_of(lease).state == (new if is_allowed(old, new) else old)


def is_allowed(old: str, new: str) -> bool:
    return old in LIVE and (new in ALLOWED[old] or new == old)


def _ends(state: Any) -> Callable[[Lease], None]:
    return lambda lease: turns.finish_turn(lease=lease, finish=Finish(state))


def _asks(lease: Lease) -> None:
    calls.close_call(
        lease=lease,
        call_id=_call(lease),
        ending=people_and_turns.tool_call_ending("t2"),
        timing=Timing(1, 2),
        effects={},
    )


ENTERS: dict[str, tuple[str, Callable[[Lease], Any]]] = {
    "go on": ("running", WRITES["go_on"]),
    "results": ("running", WRITES["store_results"]),
    "tools": ("tool_wait", _asks),
    "back off": ("backoff", WRITES["back_off"]),
    "done": ("done", _ends("done")),
    "failed": ("failed", _ends("failed")),
    "interrupted": ("interrupted", _ends("interrupted")),
}


@pytest.mark.parametrize("name", ENTERS)
def test_services_change_a_state_as_the_table_allows(name: str) -> None:
    new, act = ENTERS[name]
    lease = busy()
    for old in TurnState.values:
        Turn.objects.update(state=old)
        point = transaction.savepoint()
        try:
            act(lease)
        except Stopped:
            assert not is_allowed(old, new)
        else:
            assert is_allowed(old, new)
        assert people_and_turns.turn_of(lease).state == (new if is_allowed(old, new) else old)
        transaction.savepoint_rollback(point)


@pytest.mark.parametrize("old", TurnState.values)
def test_a_cancelled_turn_passed_through_cancelling(old: str) -> None:
    lease = people_and_turns.started_turn()
    Turn.objects.filter(pk=lease.turn_id).update(state=old)
    allowed = old == "cancelling" or "cancelling" in ALLOWED[old]
    try:
        turns.finish_turn(lease=lease, finish=Finish("cancelled", "stopped"))
    except Stopped:
        assert not allowed
    assert people_and_turns.turn_of(lease).state == ("cancelled" if allowed else old)


def test_a_queued_turn_is_claimed_once() -> None:
    turn = people_and_turns.queued(people_and_turns.person())
    lease = people_and_turns.claimed(turn)
    assert leases.claim_turn(turn_id=turn.pk, owner="another") is None
    row = people_and_turns.turn_of(lease)
    assert (row.state, row.lease_owner, row.lease_generation) == ("running", "test", 1)
    assert row.lease_until is not None
    left = row.lease_until - timezone.now()
    assert timedelta(seconds=25) < left <= leases.read_lease_duration() + timedelta(seconds=1)


@pytest.mark.django_db(transaction=True)
def test_of_many_workers_one_claims_a_turn() -> None:
    turn = people_and_turns.queued(people_and_turns.person())
    found = people_and_turns.crowd(
        12, lambda at: leases.claim_turn(turn_id=turn.pk, owner=f"w{at}")
    )
    assert people_and_turns.failures(found) == []
    assert sum(lease is not None for lease in found) == 1


def test_renewing_a_lease_tells_of_a_stop_that_was_asked_for() -> None:
    lease = people_and_turns.started_turn()
    Turn.objects.filter(pk=lease.turn_id).update(lease_until=timezone.now())
    assert leases.renew_lease(lease=lease) is False
    assert takeovers.list_expired_turns() == []
    turns.request_stop(turn=people_and_turns.turn_of(lease))
    assert leases.renew_lease(lease=lease) is True


def test_a_wait_is_visible_and_ends() -> None:
    lease = people_and_turns.started_turn()
    leases.start_backoff(lease=lease, attempt=3, seconds=20)
    row = people_and_turns.turn_of(lease)
    assert (row.state, row.attempt) == ("backoff", 3)
    assert row.retry_at is not None
    assert row.retry_at > timezone.now() + timedelta(seconds=15)
    leases.end_backoff(lease=lease, attempt=3)
    row = people_and_turns.turn_of(lease)
    assert (row.state, row.attempt, row.retry_at) == ("running", 3, None)
