"""Tool calls: planned with the answer, started before they leave, ended once."""

from __future__ import annotations

import pytest

from conversations.agent.ports import ToolDone
from conversations.agent.stop import Stopped
from conversations.log.leases import Lease
from conversations.models import Blob, ToolCall
from conversations.turns import calls, tool_calls, turns
from conversations.turns.billed_usage import Timing
from tests.support import people_and_turns

pytestmark = pytest.mark.django_db


def planned(*ids: str, name: str = "list_files", effect: str = "read") -> Lease:
    lease = people_and_turns.started_turn()
    calls.close_call(
        lease=lease,
        call_id=people_and_turns.opened(lease).call,
        ending=people_and_turns.tool_call_ending(*ids, name=name),
        timing=Timing(1, 2),
        effects={"list_files": effect},
    )
    return lease


def call(id: str) -> ToolCall:
    return ToolCall.objects.get(tool_use_id=id)


def test_calls_are_planned_in_their_order_with_the_answer() -> None:
    lease = planned("b", "a", "c")
    rows = ToolCall.objects.filter(turn_id=lease.turn_id)
    assert [(row.tool_use_id, row.position, row.state) for row in rows] == [
        ("b", 0, "planned"), ("a", 1, "planned"), ("c", 2, "planned"),
    ]  # fmt: skip
    assert {row.effect for row in rows} == {"read"}
    assert people_and_turns.turn_of(lease).state == "tool_wait"


def test_an_unknown_tool_is_taken_for_one_that_writes() -> None:
    planned("a", name="launch_rocket" * 20)
    assert call("a").effect == "write"
    assert call("a").name == ("launch_rocket" * 20)[:128]


def test_a_call_that_writes_starts_once() -> None:
    lease = planned("a", effect="write")
    tool_calls.start_tool(lease=lease, tool_use_id="a")
    started = call("a").started_at
    assert call("a").state == "started"
    assert started is not None
    with pytest.raises(Stopped):
        tool_calls.start_tool(lease=lease, tool_use_id="a")
    assert call("a").started_at == started


def test_no_call_starts_once_a_stop_was_asked_for() -> None:
    lease = planned("a")
    turns.request_stop(turn=people_and_turns.turn_of(lease))
    with pytest.raises(Stopped) as stopped:
        tool_calls.start_tool(lease=lease, tool_use_id="a")
    assert stopped.value.reason == "user"
    assert (call("a").state, call("a").started_at) == ("planned", None)


def test_the_whole_result_is_kept_and_ends_the_call_once() -> None:
    lease = planned("a")
    tool_calls.start_tool(lease=lease, tool_use_id="a")
    done = ToolDone('"' + "long " * 100_000 + '"', "ok", {"bytes": 500_000})
    tool_calls.finish_tool(lease=lease, tool_use_id="a", done=done)
    row = call("a")
    assert (row.state, row.details) == ("ok", {"bytes": 500_000})
    assert row.output is not None
    assert row.output.text == done.content
    tool_calls.finish_tool(lease=lease, tool_use_id="a", done=ToolDone('"late"', "error"))
    assert call("a").state == "ok"
    assert call("a").output_id == row.output_id


def test_a_call_that_never_started_can_end() -> None:
    lease = planned("a", "b")
    tool_calls.finish_tool(lease=lease, tool_use_id="a", done=ToolDone('"no"', "denied"))
    tool_calls.finish_tool(lease=lease, tool_use_id="b", done=ToolDone('"no"', "cancelled"))
    assert [call("a").state, call("b").state] == ["denied", "cancelled"]
    assert call("a").started_at is None


def test_equal_results_are_kept_once() -> None:
    lease = planned("a", "b")
    for name in ("a", "b"):
        tool_calls.finish_tool(lease=lease, tool_use_id=name, done=ToolDone('"same"', "ok"))
    assert call("a").output_id == call("b").output_id
    assert Blob.objects.filter(text='"same"').count() == 1


def test_a_worker_cannot_end_the_call_of_another_turn() -> None:
    planned("a")
    other = people_and_turns.started_turn(people_and_turns.person("eve"))
    tool_calls.finish_tool(lease=other, tool_use_id="a", done=ToolDone('"mine"', "ok"))
    assert call("a").state == "planned"
    with pytest.raises(Stopped):
        tool_calls.start_tool(lease=other, tool_use_id="a")
