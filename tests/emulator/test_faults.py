"""Every fault, ordered by header, by a word in the prompt, or through the control endpoint."""

from __future__ import annotations

import time
from typing import Any

import pytest

from agentweb.emulator.faults import answer_faults, refusal_faults, stream_faults
from agentweb.emulator.faults.fault import Fault, parse_fault
from tests.emulator.samples import TOOL

STATUSES = [
    ("bad_request", 400, "invalid_request_error"),
    ("spend400", 400, "invalid_request_error"),
    ("overflow", 400, "invalid_request_error"),
    ("context_limit", 400, "invalid_request_error"),
    ("authentication", 401, "authentication_error"),
    ("billing", 402, "billing_error"),
    ("permission", 403, "permission_error"),
    ("not_found", 404, "not_found_error"),
    ("conflict", 409, "conflict_error"),
    ("rate_limited:7", 429, "rate_limit_error"),
    ("spend_limit", 429, "rate_limit_error"),
    ("api_error", 500, "api_error"),
    ("unavailable", 503, "api_error"),
    ("timeout", 504, "timeout_error"),
    ("overloaded", 529, "overloaded_error"),
    ("compaction_unavailable", 529, "overloaded_error"),
    ("status:403", 403, "permission_error"),
    ("status:429:12", 429, "rate_limit_error"),
]


@pytest.mark.parametrize(("fault", "status", "kind"), STATUSES)
def test_a_refusal_has_its_status_and_type(
    ask: Any, body: Any, fault: str, status: int, kind: str
) -> None:
    answered = ask(body(), x_emulator_fault=fault)
    assert (answered.status, answered.json["error"]["type"]) == (status, kind)


def test_a_fault_that_is_too_large_has_no_json(ask: Any, body: Any) -> None:
    assert ask(body(), x_emulator_fault="too_large").body.startswith(b"<html>")


@pytest.mark.parametrize(
    ("fault", "retry"),
    [
        ("rate_limited:7", "7"),
        ("rate_limited", "1"),
        ("rate_limited:none", None),
        ("spend_limit", None),
        ("status:429:12", "12"),
        ("status:429", None),
    ],
)
def test_a_429_says_when_to_retry_or_that_there_is_no_use(
    ask: Any, body: Any, fault: str, retry: str | None
) -> None:
    answered = ask(body(), x_emulator_fault=fault)
    assert answered.headers.get("retry-after") == retry
    if fault == "spend_limit":
        assert answered.json["error"]["details"]["error_code"] == "enforced_spend_limit_reached"
        assert answered.headers["x-should-retry"] == "false"


def test_a_word_in_the_prompt_does_what_the_header_does(ask: Any, body: Any) -> None:
    assert ask(body("Hello emulator:fault=overloaded please")).status == 529


def test_a_model_name_can_carry_a_fault(ask: Any, body: Any) -> None:
    assert ask(body(model="claude-sonnet-5-5+overloaded")).status == 529
    cut = ask(body(model="claude-sonnet-5-5+max_tokens")).json
    assert (cut["model"], cut["stop_reason"]) == ("claude-sonnet-5-5", "max_tokens")


@pytest.mark.parametrize("how", [{"x_emulator_pace": "0.01"}, {}])
def test_a_request_can_ask_for_its_pace(ask: Any, body: Any, how: dict[str, str]) -> None:
    word = "" if how else " emulator:pace=0.01"
    began = time.monotonic()
    ask(body(f"Hello{word}", stream=True), **how)
    assert time.monotonic() - began > 0.1


def test_a_word_in_an_earlier_prompt_is_over(ask: Any, body: Any) -> None:
    asked = body("emulator:fault=overloaded")
    asked["messages"] += [
        {"role": "assistant", "content": "Sorry."},
        {"role": "user", "content": "Hi"},
    ]
    assert ask(asked).status == 200


def test_a_word_holds_through_the_tool_rounds_of_its_turn(ask: Any, body: Any) -> None:
    asked = body("emulator:fault=overloaded")
    asked["messages"] += [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "a", "name": "b", "input": {}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "c"}]},
    ]
    assert ask(asked).status == 529


def test_a_limited_fault_hits_only_the_first_requests(ask: Any, body: Any) -> None:
    statuses = [ask(body("Hi emulator:fault=overloaded:x2")).status for _ in range(4)]
    assert statuses == [529, 529, 200, 200]
    assert ask(body("Another emulator:fault=overloaded:x2")).status == 529


def test_ordered_faults_are_taken_in_order(ask: Any, body: Any) -> None:
    ask({"faults": ["overloaded", "rate_limited:3"]}, path="/emulator/faults")
    assert [ask(body()).status for _ in range(3)] == [529, 429, 200]


def test_words_in_a_transcript_are_not_meant_for_its_summary(ask: Any, body: Any) -> None:
    quoted = "Summarise the conversation.\n\nUser: emulator:fault=overloaded"
    assert ask(body(quoted, system="[CONTEXT SUMMARY]")).status == 200


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("overloaded", Fault("overloaded")),
        ("rate_limited:30", Fault("rate_limited", "30")),
        ("overloaded:x2", Fault("overloaded", "", 2)),
        ("error_after:12:x1", Fault("error_after", "12", 1)),
        ("status:429:3600:x3", Fault("status", "429:3600", 3)),
    ],
)
def test_a_fault_is_named_with_argument_and_count(text: str, fault: Fault) -> None:
    assert parse_fault(text) == fault


@pytest.mark.parametrize(
    ("fault", "stop"),
    [
        ("max_tokens", "max_tokens"),
        ("max_tokens_tool", "max_tokens"),
        ("window", "model_context_window_exceeded"),
        ("pause_turn", "pause_turn"),
        ("refusal", "refusal"),
        ("refusal_null", "refusal"),
        ("refusal_partial", "refusal"),
        ("empty", "end_turn"),
        ("unknown_stop", "meditation"),
        ("bad_json_tool", "tool_use"),
        ("unknown_tool", "tool_use"),
        ("many_tools:50", "tool_use"),
        ("same_tool_ids", "tool_use"),
        ("loop", "tool_use"),
        ("tool_without_stop", "end_turn"),
        ("stop_without_tool", "tool_use"),
    ],
)
def test_a_reply_fault_ends_with_its_stop_reason(
    ask: Any, body: Any, fault: str, stop: str
) -> None:
    whole = ask(body(), x_emulator_fault=fault).json
    streamed = ask(body(stream=True), x_emulator_fault=fault).events
    final = next(data for name, data in streamed if name == "message_delta")
    assert whole["stop_reason"] == final["delta"]["stop_reason"] == stop


def test_a_cut_tool_input_is_not_json_on_the_wire(ask: Any, body: Any) -> None:
    events = ask(body(stream=True, tools=[TOOL]), x_emulator_fault="max_tokens_tool").events
    partial = "".join(
        d["delta"].get("partial_json", "") for n, d in events if n == "content_block_delta"
    )
    assert partial.startswith('{"path"')
    assert not partial.endswith("}")


def test_a_mid_stream_error_comes_after_so_many_deltas_with_status_200(ask: Any, body: Any) -> None:
    answered = ask(body(stream=True), x_emulator_fault="error_after:4")
    names = [name for name, _ in answered.events]
    assert (answered.status, names.count("content_block_delta"), names[-1]) == (200, 4, "error")
    assert answered.events[-1][1]["error"] == {"type": "overloaded_error", "message": "Overloaded"}


@pytest.mark.parametrize(
    ("fault", "finished"),
    [("end_after:2", True), ("cut_after:2", False), ("end_before_stop", True)],
)
def test_a_stream_may_just_end(ask: Any, body: Any, fault: str, finished: bool) -> None:
    answered = ask(body(stream=True), x_emulator_fault=fault)
    assert answered.finished is finished
    assert "message_stop" not in [name for name, _ in answered.events]


@pytest.mark.parametrize("offset", [0, 1, 7, 100, 1_000])
def test_a_stream_can_be_cut_at_every_byte(ask: Any, body: Any, offset: int) -> None:
    whole = ask(body("Show me a table", stream=True)).body
    cut = ask(body("Show me a table", stream=True), x_emulator_fault=f"cut_bytes:{offset}")
    assert len(cut.body) == offset
    assert not cut.finished
    assert whole[:0] == b""


@pytest.mark.parametrize(
    ("fault", "name", "times"),
    [
        ("duplicate_start", "message_start", 2),
        ("duplicate_stop", "message_stop", 2),
        ("duplicate_block_stop", "content_block_stop", 2),
        ("unknown_event", "content_block_aura", 1),
        ("no_start", "message_start", 0),
        ("no_delta", "message_delta", 0),
    ],
)
def test_an_odd_stream_has_the_event_so_often(
    ask: Any, body: Any, fault: str, name: str, times: int
) -> None:
    events = ask(body(stream=True), x_emulator_fault=fault).events
    assert [event for event, _ in events].count(name) == times


def test_odd_blocks_deltas_and_indexes(ask: Any, body: Any) -> None:
    skipped = ask(body(stream=True), x_emulator_fault="index_skip").events
    assert {data["index"] for _, data in skipped if "index" in data} == {10}
    odd = ask(body(stream=True), x_emulator_fault="unknown_delta").events
    assert "scent_delta" in {d["delta"]["type"] for n, d in odd if n == "content_block_delta"}
    block = ask(body(), x_emulator_fault="unknown_block").json["content"][0]
    assert block["type"] == "hologram"


def test_bad_json_in_an_event(ask: Any, body: Any) -> None:
    assert b"data: {oops\n\n" in ask(body(stream=True), x_emulator_fault="bad_sse").body


def test_a_page_instead_of_an_answer(ask: Any, body: Any) -> None:
    answered = ask(body(), x_emulator_fault="html200")
    assert (answered.status, answered.headers["content-type"]) == (200, "text/html")


def test_a_redirect_names_another_host(ask: Any, body: Any) -> None:
    answered = ask(body(), x_emulator_fault="redirect:http://127.0.0.1:9/x")
    assert (answered.status, answered.headers["location"]) == (307, "http://127.0.0.1:9/x")


def test_control_characters_and_lone_surrogates_arrive_escaped(ask: Any, body: Any) -> None:
    text = ask(body(), x_emulator_fault="nul").json["content"][0]["text"]
    assert "\x00" in text
    assert "\ud83d" in text
    assert b"\\ud83d" in ask(body(stream=True), x_emulator_fault="nul").body


def test_no_fault_has_two_meanings() -> None:
    groups = (refusal_faults.NAMES, answer_faults.NAMES, stream_faults.NAMES)
    assert sum(map(len, groups)) == len(frozenset.union(*groups)) >= 50


def test_the_control_endpoint_shows_bills_and_requests_and_forgets_them(
    ask: Any, body: Any
) -> None:
    answered = ask(body("Hello"))
    bills = ask(path="/emulator/bills", method="GET").json
    assert bills["total_micros"] == int(answered.headers["agentweb-emulator-cost-micros"])
    recorded = ask(path="/emulator/requests", method="GET").json["requests"]
    assert recorded[0]["request_id"] == answered.headers["request-id"]
    ask(path="/emulator/reset")
    assert ask(path="/emulator/bills", method="GET").json["bills"] == []


@pytest.mark.parametrize("raw", [b"{", b"[]", b'{"faults": [1]}', b"{}"])
def test_a_wrong_order_is_refused(ask: Any, raw: bytes) -> None:
    assert ask(raw, path="/emulator/faults").status == 400
