"""Calls: recorded with the money they hold before they leave, settled with their answer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext

from conversations.agent.ports import Ending, Finish, ModelFailed, Refused, Sending, ToolDone
from conversations.agent.stop import Stopped
from conversations.agent.usage import MOST_ROUNDS, UNASKED, Usage, read_usage
from conversations.budgets.affordability import pad_estimate
from conversations.context.view import wire
from conversations.context.view.envelope import Envelope as Parameters
from conversations.context.view.envelope import build_envelope
from conversations.log import append
from conversations.log.leases import Lease
from conversations.log.rebuild import rebuild_request
from conversations.models import (
    ApiCall,
    ApiModel,
    ApiResult,
    Blob,
    Draft,
    Envelope,
    Message,
    ModelPrice,
    ToolCall,
    User,
)
from conversations.turns import calls, drafts, tool_calls, turns
from conversations.turns.billed_usage import IN_FLIGHT, TOKENS_PER_SECOND, Timing
from tests.support import people_and_turns, replayed_turns, stored_turns

pytestmark = pytest.mark.django_db


def result_of(call: int) -> ApiResult:
    return ApiResult.objects.get(call_id=call)


def closed(lease: Lease, ending: Ending, envelope: Parameters = stored_turns.ENVELOPE) -> ApiResult:
    sent = people_and_turns.opened(lease, envelope)
    stored_turns.close(lease, sent.call, ending)
    return result_of(sent.call)


def test_a_rebuilt_body_has_the_digest_of_the_one_sent() -> None:
    replayed_turns.forget()
    played = stored_turns.played()
    rows = ApiCall.objects.filter(conversation=played.conversation)
    assert [row.purpose for row in rows.order_by("pk")] == ["reply", "summary", "reply"]
    for row in rows:
        again = rebuild_request(row)
        assert (again.digest, again.size) == (row.body_digest, row.body_bytes)


def test_the_body_given_to_send_is_the_one_that_was_recorded() -> None:
    lease = people_and_turns.started_turn()
    sent = people_and_turns.opened(lease)
    row = ApiCall.objects.get(pk=sent.call)
    assert wire.digest(sent.body) == row.body_digest
    assert len(sent.body.encode()) == row.body_bytes
    assert (row.number, row.tip, row.model) == (1, 1, stored_turns.MODEL)


def test_equal_envelopes_and_messages_are_kept_once() -> None:
    stored_turns.played("ada")
    replayed_turns.forget()
    stored_turns.played("bob")
    assert Envelope.objects.count() == 1
    assert Blob.objects.filter(text__startswith='[{"role":"user"').count() == 1


def test_attempts_are_numbered_within_their_turn() -> None:
    lease = people_and_turns.started_turn()
    for number in (1, 2, 3):
        sent = people_and_turns.opened(lease)
        assert ApiCall.objects.get(pk=sent.call).number == number
        stored_turns.close(
            lease, sent.call, Ending("error", failure=ModelFailed("overloaded", "busy"))
        )


def test_a_model_without_a_price_is_refused_even_without_a_budget() -> None:
    ApiModel.objects.create(id="unpriced", window=200_000, max_output=8_000, thinking="adaptive")
    lease = people_and_turns.started_turn()
    unpriced = build_envelope(model="unpriced", max_tokens=10, system="")
    before = people_and_turns.everything()
    with pytest.raises(Refused) as refused:
        people_and_turns.opened(lease, unpriced)
    assert refused.value.code == "price_missing"
    assert "unpriced" in refused.value.text
    assert people_and_turns.everything() == before


def test_a_missing_price_of_one_kind_is_refused() -> None:
    ModelPrice.objects.filter(model=stored_turns.MODEL, kind="output").delete()
    with pytest.raises(Refused) as refused:
        people_and_turns.opened(people_and_turns.started_turn())
    assert refused.value.code == "price_missing"


def test_a_stop_that_was_asked_for_anywhere_comes_before_the_next_call() -> None:
    lease = people_and_turns.started_turn()
    turns.request_stop(turn=people_and_turns.turn_of(lease))
    before = people_and_turns.everything()
    with pytest.raises(Stopped, match="user"):
        people_and_turns.opened(lease)
    assert people_and_turns.everything() == before


def test_a_user_who_was_shut_out_in_mid_turn_makes_no_more_calls() -> None:
    lease = people_and_turns.started_turn()
    User.objects.update(is_active=False)
    with pytest.raises(Refused) as refused:
        people_and_turns.opened(lease)
    assert refused.value.code == "inactive"
    assert not ApiCall.objects.exists()


def test_an_answer_is_stored_with_its_bill_its_tools_and_its_timing() -> None:
    lease = people_and_turns.started_turn()
    usage = Usage(1_000, 50, 200, 100, 0, '{"input_tokens":1000}')
    ending = replace(people_and_turns.tool_call_ending("t1", "t2"), usage=usage, request_id="req_1")
    row = closed(lease, ending)
    assert (row.status, row.request_id, row.http_status) == ("complete", "req_1", 200)
    assert (row.input_tokens, row.output_tokens) == (1_000, 50)
    assert (row.cache_read_tokens, row.cache_write_tokens) == (200, 100)
    assert (row.usage, row.cost_basis) == ('{"input_tokens":1000}', "exact")
    assert (row.first_event_ms, row.duration_ms) == (12, 345)
    assert row.cost_micros > 0
    assert row.answer is not None
    assert row.answer.content == wire.join(ending.blocks)
    assert ToolCall.objects.filter(answer=row.answer).count() == 2


def test_an_answer_of_which_nothing_is_kept_is_no_message() -> None:
    lease = people_and_turns.started_turn()
    row = closed(lease, Ending("error", failure=ModelFailed("overloaded", "Busy", 529)))
    assert row.answer is None
    assert (row.http_status, row.error_type, row.error_message) == (529, "overloaded", "Busy")
    assert (row.cost_micros, row.cost_basis) == (0, "none")
    assert Message.objects.count() == 1


def test_what_the_api_says_is_stored_whatever_characters_it_has() -> None:
    lease = people_and_turns.started_turn()
    failure = ModelFailed("invalid_request", "nul \0 and lone \ud800")
    row = closed(lease, Ending("error", failure=failure, stop_reason="odd\0", request_id="r\0"))
    assert row.error_message == "nul \ufffd and lone \ufffd"
    assert (row.stop_reason, row.request_id) == ("odd\ufffd", "r\ufffd")
    turns.finish_turn(lease=lease, finish=Finish("failed", "", "invalid_request", failure.text))
    assert people_and_turns.turn_of(lease).error_text == "nul \ufffd and lone \ufffd"


def test_a_cut_answer_is_billed_for_what_came() -> None:
    lease = people_and_turns.started_turn()
    failure = ModelFailed("cut", "The connection was cut.")
    usage = Usage(1_000, 1, 0, 0, 0)
    row = closed(lease, Ending("truncated", usage, received_tokens=400, failure=failure))
    assert row.cost_basis == "estimated"
    full = closed(lease, Ending("complete", Usage(1_000, 400, 0, 0, 0), "end_turn"))
    assert row.cost_micros == full.cost_micros
    assert (row.output_tokens, wire.decode(row.usage)) == (400, {})
    assert full.cost_basis == "exact"


def test_a_cut_answer_costs_no_more_than_was_allowed_and_no_less_than_was_announced() -> None:
    lease = people_and_turns.started_turn()
    most = stored_turns.ENVELOPE.max_tokens
    row = closed(lease, Ending("truncated", Usage(1_000, 1, 0, 0, 0), received_tokens=most + 7))
    full = closed(lease, Ending("complete", Usage(1_000, most, 0, 0, 0), "end_turn"))
    assert row.cost_micros == full.cost_micros
    row = closed(lease, Ending("truncated", Usage(1_000, 9, 0, 0, 0), received_tokens=5))
    full = closed(lease, Ending("complete", Usage(1_000, 9, 0, 0, 0), "end_turn"))
    assert row.cost_micros == full.cost_micros


def test_a_cut_call_that_said_nothing_of_its_input_costs_what_was_estimated() -> None:
    lease = people_and_turns.started_turn()
    row = closed(lease, Ending("truncated", Usage(0, 0, 0, 0, 0), received_tokens=30))
    asked = pad_estimate(row.call.estimated_tokens)
    full = closed(lease, Ending("complete", Usage(0, 30, 0, asked, 0), "end_turn"))
    assert row.cost_micros == full.cost_micros > 0
    assert row.cost_basis == "estimated"


def test_a_cut_answer_that_told_its_iterations_is_billed_for_what_came_too() -> None:
    lease = people_and_turns.started_turn()
    rows = [
        {"type": "compaction", "input_tokens": 500, "output_tokens": 30},
        {"type": "message", "input_tokens": 1_000, "output_tokens": 1},
    ]
    usage = read_usage({"input_tokens": 1_000, "output_tokens": 1, "iterations": rows})
    row = closed(lease, Ending("truncated", usage, received_tokens=400))
    full = closed(lease, Ending("complete", Usage(1_500, 430, 0, 0, 0), "end_turn"))
    assert row.cost_micros == full.cost_micros
    assert (row.input_tokens, row.output_tokens, row.cost_basis) == (1_500, 430, "estimated")


@pytest.mark.parametrize("is_hour", [False, True])
def test_a_call_that_was_stopped_or_late_before_its_first_event_costs_its_input(
    is_hour: bool,
) -> None:
    envelope = stored_turns.ENVELOPE.with_lifetime("1h" if is_hour else "5m")
    late = ModelFailed("timeout", "The API did not answer in time.", may_cost=True)
    for ending in (Ending("error", failure=late), Ending("stopped")):
        lease = people_and_turns.started_turn(User.objects.first() or people_and_turns.person())
        row = closed(lease, ending, envelope)
        asked = pad_estimate(row.call.estimated_tokens)
        written = (0, asked) if is_hour else (asked, 0)
        dearest = Usage(0, IN_FLIGHT, 0, *written, factors=UNASKED)
        full = closed(lease, Ending("complete", dearest, "end_turn"))
        assert (row.cost_micros, row.cost_basis) == (full.cost_micros, "estimated")
        assert row.cost_micros > 0
        assert row.input_tokens is None


@pytest.mark.parametrize("code", ["unreachable", "overloaded", "authentication"])
def test_a_request_that_was_refused_or_never_sent_is_free(code: str) -> None:
    failure = ModelFailed(code, "No.")
    row = closed(people_and_turns.started_turn(), Ending("error", failure=failure))
    assert (row.cost_micros, row.cost_basis) == (0, "none")


def test_a_stopped_answer_keeps_its_text_and_costs_what_may_have_been_on_its_way() -> None:
    lease = people_and_turns.started_turn()
    ending = Ending(
        "stopped", Usage(1_000, 1, 0, 0, 0), blocks=(people_and_turns.ANSWER,), received_tokens=9
    )
    row = closed(lease, ending)
    assert (row.cost_basis, row.output_tokens) == ("estimated", 9 + IN_FLIGHT)
    assert row.answer is not None


@pytest.mark.parametrize(
    ("has_thought", "seconds", "written"),
    [
        (True, 3, 30 + 3 * TOKENS_PER_SECOND + IN_FLIGHT),
        (True, 0, 30 + IN_FLIGHT),
        (True, 900, 2_000),
        (False, 900, 30),
    ],
)
def test_thinking_of_which_a_summary_is_shown_costs_by_its_time(
    has_thought: bool, seconds: int, written: int
) -> None:
    lease = people_and_turns.started_turn()
    cut = ModelFailed("cut", "The connection was cut.", may_cost=True)
    ending = Ending(
        "truncated", Usage(1_000, 1, 0, 0, 0), received_tokens=30, has_thought=has_thought,
        failure=cut,
    )  # fmt: skip
    sent = people_and_turns.opened(lease)
    calls.close_call(
        lease=lease, call_id=sent.call, ending=ending, effects={},
        timing=Timing(500, 500 + 1_000 * seconds),
    )  # fmt: skip
    assert result_of(sent.call).output_tokens == written


def test_a_figure_beyond_the_window_of_the_model_is_clamped_to_it() -> None:
    lease = people_and_turns.started_turn()
    window = ApiModel.objects.get(pk=stored_turns.MODEL).window
    part = {"type": "message", "input_tokens": 10 * window, "output_tokens": 7}
    said = read_usage({"input_tokens": 10 * window, "output_tokens": 7, "iterations": [part]})
    row = closed(lease, Ending("complete", said, "end_turn"))
    assert (row.input_tokens, row.output_tokens, row.cost_basis) == (window, 7, "clamped")
    # The figures of the API's own tools are sums over their rounds.
    rounds = read_usage({"input_tokens": 99 * window, "message_start": {"input_tokens": 5}})
    row = closed(lease, Ending("complete", rounds, "end_turn"))
    assert (row.input_tokens, row.cost_basis) == (MOST_ROUNDS * window, "clamped")
    near = Usage(window - 1, 7, 0, 0, 0)
    assert closed(lease, Ending("complete", near, "end_turn")).cost_basis == "exact"


def test_a_malformed_figure_never_makes_a_call_cheaper_than_its_estimate() -> None:
    lease = people_and_turns.started_turn(text="word " * 400)
    said = read_usage({"input_tokens": -5, "output_tokens": 1})
    row = closed(lease, Ending("complete", said, "end_turn", received_tokens=300))
    assert row.cost_basis == "clamped"
    assert row.input_tokens == row.call.estimated_tokens
    assert row.output_tokens == 300


@pytest.mark.django_db(transaction=True)
def test_a_failure_while_an_answer_is_stored_leaves_nothing_of_it() -> None:
    lease = people_and_turns.started_turn()
    people_and_turns.limited(people_and_turns.turn_of(lease).conversation.owner, 50_000_000)
    sent = people_and_turns.opened(lease)
    before = people_and_turns.everything()
    with pytest.raises(IntegrityError):
        stored_turns.close(lease, sent.call, people_and_turns.tool_call_ending("t1", "t1"))
    assert people_and_turns.everything() == before


def test_a_draft_lives_as_long_as_its_call_is_open() -> None:
    lease = people_and_turns.started_turn()
    drafts.save_draft(lease=lease, text="too early", thinking="")
    assert not Draft.objects.exists()
    sent = people_and_turns.opened(lease)
    drafts.save_draft(lease=lease, text="Here", thinking="hm")
    drafts.save_draft(lease=lease, text="Here you", thinking="hm")
    draft = Draft.objects.get()
    assert (draft.text, draft.thinking, draft.call_id) == ("Here you", "hm", sent.call)
    stored_turns.close(lease, sent.call, people_and_turns.tool_call_ending("t1"))
    assert not Draft.objects.exists()
    drafts.save_draft(lease=lease, text="too late", thinking="")
    assert not Draft.objects.exists()


def test_a_summary_leaves_the_draft_of_the_answer_alone() -> None:
    lease = people_and_turns.started_turn()
    messages = wire.encode([{"role": "user", "content": [{"type": "text", "text": "x"}]}])
    summary = Sending("summary", stored_turns.ENVELOPE, messages, 100, None, 1)
    aside = calls.open_call(lease=lease, sending=summary)
    drafts.save_draft(lease=lease, text="of a summary", thinking="")
    assert not Draft.objects.exists()
    people_and_turns.opened(lease)
    drafts.save_draft(lease=lease, text="of the answer", thinking="")
    stored_turns.close(lease, aside.call, Ending("complete", Usage(9, 9, 0, 0, 0), "end_turn"))
    assert Draft.objects.get().text == "of the answer"


def test_a_round_costs_the_same_queries_however_long_the_turn_is() -> None:
    user = people_and_turns.person()
    people_and_turns.limited(user, 500_000_000)
    lease = people_and_turns.started_turn(user)
    round_queries(lease, "zeroth")  # it makes the window
    first = round_queries(lease, "first")
    for at in range(10):
        round_queries(lease, f"t{at}")
    assert round_queries(lease, "last") == first
    assert sum(first) <= 60


def round_queries(lease: Lease, id: str) -> list[int]:
    """Play a round with one tool; give the queries of each of its transactions."""
    asked, done = people_and_turns.sending(lease), ToolDone(wire.encode(id), "ok")
    with CaptureQueriesContext(connection) as opening:
        sent = calls.open_call(lease=lease, sending=asked)
    with CaptureQueriesContext(connection) as closing:
        stored_turns.close(lease, sent.call, people_and_turns.tool_call_ending(id))
    with CaptureQueriesContext(connection) as starting:
        tool_calls.start_tool(lease=lease, tool_use_id=id)
    with CaptureQueriesContext(connection) as finishing:
        tool_calls.finish_tool(lease=lease, tool_use_id=id, done=done)
    with CaptureQueriesContext(connection) as storing:
        append.store_results(lease=lease, content=people_and_turns.results(id), estimate=1)
    return [len(each) for each in (opening, closing, starting, finishing, storing)]
