"""The inspector's course: which calls are on the path, what stands between them, at what cost."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations.charts import Chart
from conversations.context.policy.policy import PRESETS
from conversations.inspector import charts
from conversations.inspector.call_index import CallIndex, read_call_index
from conversations.inspector.composition import PARTS, build_composition, scale_parts
from conversations.inspector.current_context import (
    read_current_context,
    read_entries,
    read_outline,
)
from conversations.inspector.timeline import PAGE, Timeline, build_timeline
from conversations.log import leases
from conversations.models import Conversation, Message, Transformation
from conversations.reductions.policy_outline import build_outline
from conversations.transfer.importing import import_recording
from conversations.transfer.recordings import parse_recording
from conversations.turns import turns
from tests.support import people_and_turns, stored_turns

pytestmark = pytest.mark.django_db


def queries(action: Any) -> int:
    with CaptureQueriesContext(connection) as found:
        action()
    return len(found)


def address(name: str, number: int) -> str:
    return f"/{name}/{number}/"


def order(found: Timeline) -> list[tuple[str, int]]:
    """Give what stands on a page, newest first."""
    return [
        ("call", event.call.n) if event.call else ("change", event.change.seq)  # type: ignore[union-attr]
        for group in found.groups
        for event in group.events
    ]


def shown(found: CallIndex, **more: Any) -> list[tuple[str, int]]:
    return order(build_timeline(found, **more))


def long_conversation(size: int, name: str = "ada") -> Conversation:
    """Play turns of one call each."""
    lease = people_and_turns.started_turn(people_and_turns.person(name))
    people_and_turns.answered(lease)
    for _ in range(size - 1):
        people_and_turns.answered(
            people_and_turns.next_turn(people_and_turns.conversation_of(lease))
        )
    return people_and_turns.conversation_of(lease)


def regenerated() -> tuple[Conversation, int]:
    """Play a turn and then another answer to its prompt; give the first answer's call."""
    played = stored_turns.played()
    Conversation.objects.filter(pk=played.conversation.pk).update(tip=1)
    conversation = Conversation.objects.get(pk=played.conversation.pk)
    turn = turns.send_prompt(conversation=conversation, text="Another way", client_id=uuid4())
    lease = leases.claim_turn(turn_id=turn.pk, owner="test")
    assert lease is not None
    people_and_turns.answered(lease)
    return people_and_turns.conversation_of(lease), 3


def test_changes_stand_between_the_calls_they_came_between() -> None:
    conversation = stored_turns.played().conversation
    conversation.refresh_from_db()
    found = build_timeline(read_call_index(conversation))
    assert order(found) == [
        ("call", 3), ("change", 5), ("call", 2), ("change", 4), ("call", 1),
    ]  # fmt: skip
    (group,) = found.groups
    assert (group.turn, group.calls) == (1, 3)
    calls = [event.call for event in group.events if event.call]
    assert [call.purpose for call in calls] == ["reply", "summary", "reply"]
    assert [call.tokens_in for call in calls] == [1_300, 300, 1_300]
    assert calls[0].cached_percent == 15
    assert group.cost_micros == found.totals.cost_micros == sum(c.cost_micros or 0 for c in calls)
    assert (found.totals.changes, found.totals.calls) == (1, 3)
    assert found.totals.summaries_micros == calls[1].cost_micros
    assert (found.elsewhere, found.earlier, found.is_broken) == (0, None, False)


def test_what_was_rejected_freed_nothing_and_names_its_call() -> None:
    found = read_call_index(stored_turns.played().conversation)
    compaction, summary = found.changes
    assert (compaction.outcome, compaction.call) == ("applied", None)
    assert compaction.freed == compaction.before - compaction.after > 0
    assert (summary.outcome, summary.freed, summary.call) == ("rejected", 0, 2)


def test_only_calls_of_the_shown_path_are_shown_unless_all_are_asked_for() -> None:
    conversation, _ = regenerated()
    found = read_call_index(conversation)
    on_path = [call.n for call in found.calls if call.is_on_path]
    assert on_path == [4]
    page = build_timeline(found)
    assert order(page) == [("call", 4)]
    assert page.elsewhere == 5
    every = build_timeline(found, is_all=True)
    assert order(every) == [
        ("call", 4), ("call", 3), ("change", 5), ("call", 2), ("change", 4), ("call", 1),
    ]  # fmt: skip


def test_the_call_before_lies_on_the_way_that_led_to_a_call() -> None:
    conversation, last_of_other = regenerated()
    found = read_call_index(conversation)
    other, newest = found.calls[last_of_other - 1], found.calls[3]
    assert found.before(other) is found.calls[0]
    # The first answer's call asked the same prompt, but its answer is on the other branch.
    assert found.before(newest) is None
    assert (found.call(0), found.call(5)) == (None, None)


def test_pages_join_without_gap_or_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conversations.inspector.timeline.PAGE", 2)
    conversation = stored_turns.played().conversation
    conversation.refresh_from_db()
    found = read_call_index(conversation)
    first = build_timeline(found)
    assert first.earlier == 2
    second = build_timeline(found, before=first.earlier)
    assert second.earlier is None
    together = order(first) + order(second)
    assert together == [("call", 3), ("change", 5), ("call", 2), ("change", 4), ("call", 1)]


def test_a_thousand_calls_cost_as_many_queries_as_one() -> None:
    short, long = long_conversation(1), long_conversation(PAGE + 10, "bob")
    few = queries(lambda: build_timeline(read_call_index(short)))
    assert queries(lambda: build_timeline(read_call_index(long))) == few == 3
    page = build_timeline(read_call_index(long))
    assert page.earlier is not None
    assert len(order(page)) == PAGE


def test_rows_that_are_missing_are_told_and_not_an_error() -> None:
    conversation = stored_turns.played().conversation
    conversation.refresh_from_db()
    Conversation.objects.filter(pk=conversation.pk).update(tip=conversation.tip + 40)
    conversation.refresh_from_db()
    found = read_call_index(conversation)
    assert found.is_broken
    assert build_timeline(found).is_broken
    assert shown(found) == []
    assert len(shown(found, is_all=True)) == 5


def test_a_call_without_a_result_is_running_or_in_doubt() -> None:
    lease = people_and_turns.started_turn()
    people_and_turns.opened(lease)
    conversation = people_and_turns.conversation_of(lease)
    (call,) = read_call_index(conversation).calls
    assert (call.status, call.tokens_in, call.cached_percent) == ("running", None, None)
    conversation.turns.update(state="interrupted")
    (call,) = read_call_index(conversation).calls
    assert call.status == "in doubt"
    assert charts.draw_sizes(read_call_index(conversation).calls, (), None, address).is_empty


def test_an_imported_conversation_has_no_calls_and_a_context_all_the_same() -> None:
    recording = parse_recording({"id": "a", "messages": [{"role": "user", "content": "Hello"}]})
    conversation = import_recording(
        user=people_and_turns.person(), recording=recording, model=stored_turns.MODEL
    )
    assert read_call_index(conversation).calls == ()
    assert order(build_timeline(read_call_index(conversation))) == []
    found = read_current_context(conversation)
    assert found.composition is not None
    assert (found.composition.source, found.has_reductions) == ("estimated", False)
    assert found.ahead is not None


def test_the_present_is_weighed_and_what_comes_is_said() -> None:
    conversation = stored_turns.played().conversation
    conversation.refresh_from_db()
    found = read_current_context(conversation)
    assert found.composition is not None
    assert found.composition.tokens == 1_350
    assert sum(part.tokens for part in found.composition.segments) == 1_350
    assert found.composition.source == "reported"
    assert found.has_reductions


def test_a_log_that_has_lost_its_end_shows_what_is_left() -> None:
    conversation = stored_turns.played().conversation
    Conversation.objects.filter(pk=conversation.pk).update(tip=99)
    found = read_current_context(Conversation.objects.get(pk=conversation.pk))
    assert found.composition is not None
    assert found.problem == ""


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("window", [32_000, 200_000, 1_000_000])
def test_every_policy_says_what_it_will_do(name: str, window: int) -> None:
    found = build_outline(PRESETS[name], window)
    assert found.steps
    limits = [step.tokens for step in found.steps if step.tokens]
    assert all(0 < limit < window for limit in limits)
    assert found.first == min(limits, default=None)
    assert (found.first is None) is (name == "off")
    assert all(step.short for step in found.steps if step.tokens)


def test_what_the_api_does_not_do_for_a_model_is_not_said_of_it() -> None:
    conversation = stored_turns.played().conversation
    Conversation.objects.filter(pk=conversation.pk).update(policy={"preset": "native"})

    def said(model: str) -> list[str]:
        Conversation.objects.filter(pk=conversation.pk).update(model=model)
        found = read_outline(Conversation.objects.get(pk=conversation.pk))
        assert found is not None
        return [step.words for step in found.steps if step.words.startswith(("The API", "A summ"))]

    clears = "The API clears old tool results, all but the newest 3."
    assert said("claude-sonnet-5-5") == [
        clears, "The API compacts the beginning; the last 6 messages stay."
    ]  # fmt: skip
    assert said("claude-haiku-4-5") == [
        clears, "A summary takes the place of the middle; the last 6 messages stay."
    ]  # fmt: skip


def test_the_parts_of_a_bar_fill_it_without_gap() -> None:
    parts = {part: 100 * (at + 1) for at, part in enumerate(PARTS)}
    for total in (None, 1, 999, 5_000):
        bar = build_composition(
            parts, 10_000, total=total, ahead=build_outline(PRESETS["classic"], 10_000)
        )
        at = 0.0
        for part in bar.segments:
            assert float(part.x) == pytest.approx(at, abs=0.02)
            at = float(part.x) + float(part.width)
        assert bar.tokens == (sum(parts.values()) if total is None else total)
        assert bar.free == 10_000 - bar.tokens
        assert bar.end <= 10_000
    assert scale_parts({"prompts": 1, "answers": 1}, 7) == {"prompts": 4, "answers": 3}
    assert scale_parts({}, 5) == {}
    large = build_composition({"prompts": 10_000}, 1_000_000, total=None)
    assert large.end < large.window
    assert float(large.segments[0].width) > 20


def test_charts_have_a_point_for_each_call_and_no_more_than_they_may() -> None:
    conversation = stored_turns.played().conversation
    conversation.refresh_from_db()
    found = read_call_index(conversation)
    chart = charts.draw_sizes(found.calls, found.changes, read_outline(conversation), address)
    assert [row.label for row in chart.rows] == ["#1", "#3"]
    (mark,) = chart.marks
    assert "shortened old tool results" in mark.text
    assert len(charts.draw_cost(found.calls).rows) == 3
    assert [row.cells for row in charts.draw_cache(found.calls).rows] == [("200", "100", "1k")] * 2
    many = [replace(found.calls[0], n=n, fresh=n % 700) for n in range(1, 3_001)]
    few = charts.sample_calls(many)
    assert len(few) == charts.MOST
    assert few[-1] is many[-1]
    assert max(call.tokens_in or 0 for call in few) == max(call.tokens_in or 0 for call in many)
    assert all(one.n < other.n for one, other in pairwise(few))
    assert len(charts.draw_sizes(many, (), None, address).rows) == charts.MOST


def test_the_parts_of_each_call_are_those_of_its_view() -> None:
    conversation = stored_turns.played().conversation
    conversation.refresh_from_db()
    found = read_call_index(conversation)
    chart: Chart = charts.draw_kinds(read_entries(conversation), found.calls)
    assert [row.label for row in chart.rows] == ["#1", "#3"]
    names = [each.name for each in chart.legend]
    assert names == ["Messages of people", "Answers and calls", "Tool results"]
    prompts, answers, results = zip(*(row.cells for row in chart.rows), strict=True)
    assert prompts[0] == prompts[1]
    assert (answers[0], results[0]) == ("0", "0")
    assert results[1] != "0"
    assert Message.objects.filter(conversation=conversation).count() == 4
    assert Transformation.objects.filter(conversation=conversation).count() == 2
