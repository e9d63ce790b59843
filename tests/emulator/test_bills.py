"""Sections 1 and 4: the exact bill of a request, in whole micro-dollars."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentweb.emulator.prices import PRICES, Tariff, cost_micros
from agentweb.emulator.tokens import count_text
from agentweb.emulator.usage import Usage
from tests.emulator.samples import MARK

LONG = "The quick brown fox jumps over the lazy dog, again and again. " * 400
WRITE = {"name": "write_file", "input_schema": {"type": "object"}}
PARTS = ("text", "thinking", "partial_json")

CASES = [
    ("claude-sonnet-5-5", Usage(fresh=1_000_000), 2_000_000),
    ("claude-sonnet-5-5", Usage(output=1_000_000), 10_000_000),
    ("claude-sonnet-5-5", Usage(write_5m=1_000_000), 2_500_000),
    ("claude-sonnet-5-5", Usage(write_1h=1_000_000), 4_000_000),
    ("claude-sonnet-5-5", Usage(read=1_000_000), 100_000),
    ("claude-fable-5-1", Usage(read=1_000_000, output=1_000), 250_000 + 50_000),
    ("claude-opus-5-5", Usage(fresh=1), 4),
    ("claude-haiku-5-5", Usage(read=1), 1),
    ("claude-haiku-5-5", Usage(fresh=100_000), 10_000),
    ("claude-haiku-5-5", Usage(fresh=101_000), 50_500),
    ("claude-haiku-5-5", Usage(read=60_000, write_5m=40_001, output=100), 3_000 + 25_001 + 250),
    ("claude-haiku-4-5-20251001", Usage(fresh=3, output=2), 13),
]


@pytest.mark.parametrize(("model", "usage", "micros"), CASES)
def test_a_bill_is_the_sum_of_its_rates_rounded_up_once(
    model: str, usage: Usage, micros: int
) -> None:
    assert cost_micros(model, [usage]) == micros


def test_iterations_are_added_before_rounding() -> None:
    one = Usage(read=1)
    assert cost_micros("claude-sonnet-5-5", [one] * 10) == 1


def test_inference_in_one_country_costs_a_tenth_more() -> None:
    assert (
        cost_micros("claude-opus-5-5", [Usage(fresh=1_000)], tariff=Tariff(us_only=True)) == 4_400
    )


def test_a_tariff_is_applied_before_rounding() -> None:
    spent = [Usage(fresh=1_000, output=100)]
    plain = cost_micros("claude-opus-5-5", spent)
    tariffs = (Tariff(fast_rate=2), Tariff(is_batch=True), Tariff(is_batch=True, us_only=True))
    costs = [cost_micros("claude-opus-5-5", spent, tariff=tariff) for tariff in tariffs]
    assert costs == [plain * 2, plain // 2, plain * 11 // 20]
    assert cost_micros("claude-opus-5-5", [], tariff=tariffs[1], searches=1) == 10_000


@pytest.mark.parametrize(
    ("key", "asked", "told", "tenths"),
    [
        ("sk-a", {}, ("standard", "global", None), 10),
        ("sk-a", {"inference_geo": "us"}, ("standard", "us", None), 11),
        ("sk-a@acme/us", {}, ("standard", "us", None), 11),
        ("sk-a@acme/us", {"inference_geo": "global"}, ("standard", "global", None), 10),
        ("sk-a@priority", {"service_tier": "auto"}, ("priority", "global", None), 10),
        ("sk-a@priority", {"service_tier": "standard_only"}, ("standard", "global", None), 10),
        ("sk-a", {"speed": "fast", "model": "claude-opus-5"}, ("standard", "global", "fast"), 20),
        ("sk-a", {"speed": "standard"}, ("standard", "global", "standard"), 10),
    ],
)
def test_the_answer_says_what_it_was_priced_by(
    ask: Any, body: Any, key: str, asked: Any, told: Any, tenths: int
) -> None:
    answered = ask(body(**asked), x_api_key=key)
    usage = answered.json["usage"]
    assert (usage["service_tier"], usage["inference_geo"], usage.get("speed")) == told
    bill = ask.emulator.bills[answered.headers["request-id"]]
    (spent,) = bill.iterations
    exact = PRICES[answered.json["model"]].base.charge(spent) * tenths
    assert bill.cost_micros == -(-exact // 10_000_000)
    streamed = ask(body(**asked, stream=True), x_api_key=key)
    assert streamed.events[0][1]["message"]["usage"]["inference_geo"] == told[1]


def test_the_bill_is_in_the_header_and_in_the_books(ask: Any, body: Any) -> None:
    answered = ask(body(system=[{"type": "text", "text": LONG} | MARK]))
    usage = answered.json["usage"]
    spent = Usage(
        fresh=usage["input_tokens"],
        write_5m=usage["cache_creation_input_tokens"],
        output=usage["output_tokens"],
    )
    bill = ask.emulator.bills[answered.headers["request-id"]]
    assert bill.cost_micros == cost_micros("claude-sonnet-5-5", [spent])
    assert answered.headers["agentweb-emulator-cost-micros"] == str(bill.cost_micros)
    assert bill.complete


def test_a_stream_costs_what_the_whole_answer_costs(ask: Any, body: Any) -> None:
    whole, streamed = ask(body("Show me a table")), ask(body("Show me a table", stream=True))
    bills = ask.emulator.bills
    costs = [bills[answered.headers["request-id"]].cost_micros for answered in (whole, streamed)]
    assert costs[0] == costs[1] > 0


THINK = {"type": "adaptive", "display": "summarized"}
CUTS = [
    "cut_after:2", "error_after:12", "end_after:9", "reset_after:7", "no_delta", "bad_sse",
    "cut_bytes:900", "cut_bytes:1400", "cut_bytes:1900", "end_after:0",
]  # fmt: skip


@pytest.mark.parametrize("prompt", ["Show me a table", "Write a file a.txt", "Hello"])
@pytest.mark.parametrize("fault", CUTS)
def test_a_cut_stream_costs_what_is_on_the_wire(
    ask: Any, body: Any, fault: str, prompt: str
) -> None:
    asked = body(prompt, stream=True, thinking=THINK, tools=[WRITE])
    answered = ask(asked, x_emulator_fault=fault)
    bill = ask.emulator.bills[answered.headers["request-id"]]
    (spent,) = bill.iterations
    events = readable(answered.body)
    start = events[0]["message"]["usage"]
    assert spent.prompt == start["input_tokens"]
    assert spent.output == max(1, written(events))
    assert not bill.complete
    assert bill.cost_micros == cost_micros("claude-sonnet-5-5", [spent])


def readable(body: bytes) -> list[Any]:
    """Return the complete events, up to one that is not valid."""
    events: list[Any] = []
    for lines in body.split(b"\n\n")[:-1]:
        data = lines.split(b"data: ")[1]
        if data == b"{oops":
            break
        events.append(json.loads(data))
    return events


def written(events: list[Any]) -> int:
    """Count the output tokens that arrived, block by block."""
    total = 0
    for start in events:
        if start["type"] != "content_block_start":
            continue
        block = start["content_block"]
        deltas = [
            "".join(str(value) for name, value in event["delta"].items() if name in PARTS)
            for event in events
            if event["type"] == "content_block_delta" and event["index"] == start["index"]
        ]
        total += count_text(block.get("name", "") + "".join(deltas), "newer")
        total += 12 * (block["type"] == "tool_use")
    return total


def test_a_stream_cut_behind_its_final_figures_costs_all_of_it(ask: Any, body: Any) -> None:
    whole = ask(body("Hello", stream=True))
    cut = ask(body("Hello", stream=True), x_emulator_fault="end_before_stop")
    bills = [ask.emulator.bills[answered.headers["request-id"]] for answered in (whole, cut)]
    assert bills[0].cost_micros == bills[1].cost_micros
    assert all(bill.complete for bill in bills)


def test_a_cut_answer_is_never_longer_than_was_allowed(ask: Any, body: Any) -> None:
    asked = body("Show me a table", stream=True, max_tokens=5)
    answered = ask(asked, x_emulator_fault="no_delta")
    bill = ask.emulator.bills[answered.headers["request-id"]]
    assert bill.iterations[0].output == 5


@pytest.mark.parametrize("fault", ["no_start", "cut_bytes:0", "cut_bytes:60", "error_first"])
def test_a_stream_that_never_began_is_free(ask: Any, body: Any, fault: str) -> None:
    ask(body("Hello", stream=True), x_emulator_fault=fault)
    assert ask.emulator.bills == {}


@pytest.mark.parametrize("fault", ["overloaded", "bad_request", "rate_limited", "html200"])
def test_a_refused_request_costs_nothing(ask: Any, body: Any, fault: str) -> None:
    ask(body(), x_emulator_fault=fault)
    assert ask.emulator.billed_micros == 0


def test_output_counts_thinking(ask: Any, body: Any) -> None:
    usage = ask(body("Hello", thinking={"type": "adaptive"})).json["usage"]
    assert 0 < usage["output_tokens_details"]["thinking_tokens"] < usage["output_tokens"]
