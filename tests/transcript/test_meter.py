"""The meter: how full the context is, and that no figure is made up."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings

from conversations.agent.ports import Finish
from conversations.agent.usage import Usage
from conversations.context.policy.policy import PRESETS, Policy
from conversations.context.view import edits
from conversations.context.view.edits import SpliceBlocks, Trigger
from conversations.log import append
from conversations.log.turn_state import MOST_REPLIES, load_state
from conversations.models import ApiModel, Conversation
from conversations.reductions import manual_changes
from conversations.transcript import meter as meters
from conversations.turns import turns
from tests.support import people_and_turns, stored_turns
from tests.support.database_steps import count_steps
from tests.support.reduced_conversations import import_talk

pytestmark = pytest.mark.django_db


def meter(lease: Any) -> Any:
    return meters.read_meter(people_and_turns.conversation_of(lease))


def test_before_the_first_answer_the_messages_are_estimated() -> None:
    lease = people_and_turns.started_turn()
    found = meter(lease)
    sizes = people_and_turns.conversation_of(lease).messages.values_list("estimate", flat=True)
    assert found.tokens == sum(sizes) > 0
    assert (found.percent, found.source, found.cached_percent) == (0, "estimated", None)
    assert found.window > 100_000


def test_the_figure_is_that_of_the_last_answer() -> None:
    lease = people_and_turns.started_turn()
    usage = Usage(1_000, 500, 8_000, 1_000, 0)
    stored_turns.close(
        lease, people_and_turns.opened(lease).call, people_and_turns.complete(usage=usage)
    )
    found = meter(lease)
    assert (found.tokens, found.source, found.cached_percent) == (10_500, "reported", 80)
    assert found.percent == 10_500 * 100 // found.window


def test_what_was_reduced_before_the_first_call_does_not_fill_the_context() -> None:
    conversation = import_talk()
    before = meters.read_meter(conversation)
    who = {"conversation_id": conversation.pk, "actor_id": conversation.owner_id}
    row = manual_changes.compact_now(**who, wanted="results", digest=None)
    conversation.refresh_from_db()
    left = load_state(conversation, conversation.model).view.tokens
    found = meters.read_meter(conversation, has_next=True)
    assert (found.tokens, found.source) == (left, "estimated")
    assert found.tokens == before.tokens - (row.tokens_before - row.tokens_after)
    assert found.next is not None
    assert left < found.next.now.tokens < left + 100
    manual_changes.undo_change(**who, seq=row.seq)
    conversation.refresh_from_db()
    assert meters.read_meter(conversation).tokens == before.tokens


def test_an_answer_that_reported_nothing_is_no_empty_context() -> None:
    lease = people_and_turns.started_turn()
    stored_turns.close(
        lease,
        people_and_turns.opened(lease).call,
        people_and_turns.complete(usage=Usage(1_000, 50, 0, 0, 0)),
    )
    stored_turns.close(
        lease, people_and_turns.opened(lease).call, people_and_turns.complete(usage=None)
    )
    assert meter(lease).tokens > 1_050
    assert meter(lease).source == "estimated"


def test_what_came_and_went_since_is_counted_and_said_to_be_an_estimate() -> None:
    played = stored_turns.played()
    before = meters.read_meter(played.conversation)
    assert before.source == "reported"
    conversation = Conversation.objects.get(pk=played.conversation.pk)
    lease = people_and_turns.next_turn(conversation)
    stored_turns.close(
        lease, people_and_turns.opened(lease).call, people_and_turns.tool_call_ending("toolu_2")
    )
    content = people_and_turns.results("toolu_2").replace('"x"', '"' + "long " * 500 + '"')
    append.store_results(lease=lease, content=content, estimate=700)
    view = stored_turns.loaded(lease).view
    shorter = '{"type":"tool_result","tool_use_id":"toolu_2","content":"s"}'
    edit = SpliceBlocks(view.messages[-1].seq, 0, 1, (shorter,))
    change = edits.build_transformation(
        view, "compaction", Trigger(2, 1, "estimated", "x"), (edit,), "shorter"
    )
    full = meter(lease)
    append.record_transformation(lease=lease, change=change, policy=Policy(), summary_call=None)
    after = meter(lease)
    assert after.source == "estimated"
    assert after.tokens == full.tokens - (change.tokens_before - change.tokens_after)
    assert full.source == "estimated"
    assert full.tokens == 120 + 700


def test_the_size_that_another_model_reported_is_an_estimate() -> None:
    conversation = stored_turns.played().conversation
    first = meters.read_meter(conversation)
    other = ApiModel.objects.exclude(pk=conversation.model).earliest("pk")
    conversation.model = other.pk
    conversation.save(update_fields=["model"])
    assert first.source == "reported"
    assert meters.read_meter(conversation).source == "estimated"


def test_the_last_reply_counts_however_many_turns_had_none_since() -> None:
    lease = people_and_turns.started_turn()
    stored_turns.close(
        lease,
        people_and_turns.opened(lease).call,
        people_and_turns.complete(usage=Usage(1_000, 500, 0, 0, 0)),
    )
    turns.finish_turn(lease=lease, finish=Finish("done", "end_turn"))
    for _ in range(MOST_REPLIES + 2):
        lease = people_and_turns.next_turn(people_and_turns.conversation_of(lease), "And then?")
        turns.finish_turn(lease=lease, finish=Finish("failed"))
    found, sizes = meter(lease), stored_turns.loaded(lease).view.messages[2:]
    assert len(sizes) == MOST_REPLIES + 2
    assert (found.tokens, found.source) == (1_500 + sum(each.tokens for each in sizes), "estimated")


@pytest.mark.only_database("sqlite", "it counts the steps that it makes")
def test_it_takes_no_more_work_for_more_calls() -> None:
    lease = people_and_turns.started_turn()
    people_and_turns.answered(lease)
    conversation, found = people_and_turns.conversation_of(lease), list[int]()
    # The first size is beyond the turns that are looked through for a reply.
    for size in (MOST_REPLIES + 5, 2 * MOST_REPLIES + 5):
        while conversation.leaf < size:
            people_and_turns.answered(people_and_turns.next_turn(conversation))
            conversation.refresh_from_db()
        found.append(count_steps(lambda: meters.read_meter(conversation, has_next=True)))
        assert meters.read_meter(conversation).calls == size
    # A tree of twice as many rows may be one level deeper.
    assert found[1] < found[0] + 10, found


@pytest.mark.only_database("sqlite", "PostgreSQL's client prepares what it runs often")
def test_its_statement_is_prepared_once() -> None:
    lease = people_and_turns.started_turn()
    people_and_turns.answered(lease)
    looked_up = list[object]()

    def note(*names: object) -> int:
        looked_up.append(names)
        return sqlite3.SQLITE_OK

    connection.connection.set_authorizer(note)
    try:
        meter(lease)
        assert looked_up
        looked_up.clear()
        meters.read_meter(people_and_turns.conversation_of(lease))
        assert looked_up == []
    finally:
        connection.connection.set_authorizer(None)


@pytest.mark.parametrize(("window", "percent"), [(1_000_000, 10), (200_000, 50), (64_000, 50)])
def test_the_mark_is_where_the_promise_ends(window: int, percent: int) -> None:
    lease = people_and_turns.started_turn()
    ApiModel.objects.filter(pk=people_and_turns.conversation_of(lease).model).update(window=window)
    found = meter(lease)
    assert found.ticks[0].percent == percent
    assert found.limit == window * percent // 100


def test_more_than_the_window_is_full_and_not_more() -> None:
    lease = people_and_turns.started_turn()
    stored_turns.close(
        lease,
        people_and_turns.opened(lease).call,
        people_and_turns.complete(usage=Usage(9_999_999, 1, 0, 0, 0)),
    )
    found = meter(lease)
    assert (found.percent, found.level) == (100, 100)


def test_the_thresholds_of_the_owner_and_the_conversation_are_marked() -> None:
    lease = people_and_turns.started_turn()
    adaptive = PRESETS["adaptive"]
    promise, room = meter(lease).ticks
    assert (promise.percent, promise.label) == (10, "100,000: nothing is removed before that")
    assert room.label == f"{adaptive.room(1_000_000):,}: room for the answer"
    with override_settings(AGENTWEB_POLICY="thrifty"):
        assert meter(lease).ticks[0].label == "8,000: nothing is removed before that"
    with override_settings(AGENTWEB_POLICY="classic"):
        found = [tick.label.split(":")[0] for tick in meter(lease).ticks]
        assert found == ["40,000", "80,000", "984,000"]
    Conversation.objects.update(policy={"input_token_budget": 60_000})
    assert meter(lease).ticks[0].label.startswith("60,000")
    Conversation.objects.update(policy={"input_token_budget": "many"})
    found = meter(lease)
    assert (found.ticks, found.limit) == ((), found.window)
