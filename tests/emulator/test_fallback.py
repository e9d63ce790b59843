"""Sections 3 and 4: when a model declines, another continues; reported, and billed once."""

from __future__ import annotations

from typing import Any

import pytest

from agentweb.emulator.prices import cost_micros
from agentweb.emulator.usage import Usage
from tests.emulator.samples import TEXT, assistant, user
from tests.emulator.streams import assemble

BETA = "server-side-fallback-2026-07-01"
HOPS: Any = [{"model": "claude-opus-4-8"}]


def test_the_answer_of_the_other_model_stands_behind_a_boundary(ask: Any, body: Any) -> None:
    asked = body("Hello", fallbacks=HOPS)
    message = ask(asked, anthropic_beta=BETA, x_emulator_fault="refusal").json
    boundary, answer = message["content"]
    assert boundary["from"] == {"model": "claude-sonnet-5-5"}
    assert boundary["to"] == {"model": "claude-opus-4-8"}
    assert boundary["trigger"] == {"type": "refusal", "category": "cyber"}
    assert answer["text"].startswith("Hello!")
    assert (message["model"], message["stop_reason"]) == ("claude-opus-4-8", "end_turn")


def test_what_was_said_before_stays_before_it(ask: Any, body: Any) -> None:
    asked = body("Hello", fallbacks=HOPS)
    message = ask(asked, anthropic_beta=BETA, x_emulator_fault="refusal_partial").json
    assert [block["type"] for block in message["content"]] == ["text", "fallback", "text"]


def test_each_try_is_an_iteration_and_only_the_served_one_is_billed(ask: Any, body: Any) -> None:
    asked = body("Hello", fallbacks=HOPS)
    answered = ask(asked, anthropic_beta=BETA, x_emulator_fault="refusal")
    usage = answered.json["usage"]
    declined, served = usage["iterations"]
    assert (declined["type"], served["type"]) == ("message", "fallback_message")
    assert served["model"] == "claude-opus-4-8"
    assert usage["input_tokens"] == declined["input_tokens"] + served["input_tokens"]
    spent = Usage(fresh=served["input_tokens"], output=served["output_tokens"])
    bill = ask.emulator.bills[answered.headers["request-id"]]
    assert bill.cost_micros == cost_micros("claude-opus-4-8", [spent])


def test_its_block_streams_without_a_delta(ask: Any, body: Any) -> None:
    asked = body("Hello", fallbacks=HOPS, stream=True)
    events = ask(asked, anthropic_beta=BETA, x_emulator_fault="refusal").events
    assert [block["type"] for block in assemble(events)] == ["fallback", "text"]
    first = [name for name, data in events if data.get("index") == 0]
    assert first == ["content_block_start", "content_block_stop"]


def test_the_boundary_sent_back_is_not_read(ask: Any, body: Any) -> None:
    asked = body("Hello", fallbacks=HOPS)
    content = ask(asked, anthropic_beta=BETA, x_emulator_fault="refusal").json["content"]
    counts = [
        ask(
            asked | {"messages": [*asked["messages"], assistant(*said), user(TEXT)]},
            anthropic_beta=BETA,
        ).json["usage"]["input_tokens"]
        for said in (content, content[1:])
    ]
    assert counts[0] == counts[1]


@pytest.mark.parametrize("more", [{}, {"fallbacks": [{"model": "claude-sonnet-5-5"}]}])
def test_without_another_model_a_refusal_is_final(ask: Any, body: Any, more: Any) -> None:
    answered = ask(body("Hello", **more), anthropic_beta=BETA, x_emulator_fault="refusal")
    assert answered.json["stop_reason"] == "refusal"
    assert answered.json["stop_details"]["category"] == "cyber"


def test_who_does_not_decline_is_not_replaced(ask: Any, body: Any) -> None:
    message = ask(body("Hello", fallbacks=HOPS), anthropic_beta=BETA).json
    assert [block["type"] for block in message["content"]] == ["text"]
    assert [row["type"] for row in message["usage"]["iterations"]] == ["message"]


def test_an_unknown_model_to_go_on_with_is_refused(ask: Any, body: Any) -> None:
    answered = ask(body(fallbacks=[{"model": "claude-nobody"}]), anthropic_beta=BETA)
    assert (answered.status, answered.message) == (404, "model: claude-nobody")
