"""Section 1 and the SDK's own types: message batches, at half the price."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import pytest
import pytest_asyncio

from agentweb.emulator.prices import Tariff, cost_micros
from agentweb.emulator.server import EmulatorServer
from tests.emulator.test_server_tools import SEARCH

MODEL = "claude-sonnet-5-5"
WHERE = "/v1/messages/batches"


@pytest_asyncio.fixture
async def client(served: EmulatorServer) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(
        api_key="sk-batch@two", base_url=served.url, max_retries=0
    ) as opened:
        yield opened


def batch_body(body: Any, *prompts: str, **fields: Any) -> dict[str, Any]:
    rows = [
        {"custom_id": f"row-{at}", "params": body(prompt, **fields)}
        for at, prompt in enumerate(prompts)
    ]
    return {"requests": rows}


def results(ask: Any, batch_id: str) -> dict[str, Any]:
    lines = ask(path=f"{WHERE}/{batch_id}/results", method="GET").body.splitlines()
    return {row["custom_id"]: row["result"] for row in map(json.loads, lines)}


@pytest.mark.asyncio
async def test_the_sdk_creates_waits_reads_and_deletes(client: anthropic.AsyncAnthropic) -> None:
    params: Any = {"model": MODEL, "max_tokens": 100}
    good = params | {"messages": [{"role": "user", "content": "Hello"}]}
    made = await client.messages.batches.create(
        requests=[
            {"custom_id": "good", "params": good},
            {"custom_id": "bad", "params": params | {"messages": []}},
        ]
    )
    assert (made.processing_status, made.request_counts.processing) == ("in_progress", 2)
    done = await client.messages.batches.retrieve(made.id)
    assert (done.processing_status, done.request_counts.succeeded) == ("ended", 1)
    found = {
        row.custom_id: row.result async for row in await client.messages.batches.results(made.id)
    }
    good_one, bad_one = found["good"], found["bad"]
    assert good_one.type == "succeeded"
    assert good_one.message.usage.service_tier == "batch"
    assert bad_one.type == "errored"
    assert bad_one.error.error.message == "messages: at least one message is required"
    assert [batch.id async for batch in client.messages.batches.list(limit=1)] == [made.id]
    assert (await client.messages.batches.delete(made.id)).type == "message_batch_deleted"
    with pytest.raises(anthropic.NotFoundError):
        await client.messages.batches.retrieve(made.id)


def test_a_batch_costs_half_and_its_searches_in_full(ask: Any, body: Any) -> None:
    made = ask(batch_body(body, "search the web for tea", tools=[SEARCH]), path=WHERE).json
    found = results(ask, made["id"])["row-0"]["message"]
    (bill,) = ask.emulator.bills.values()
    assert bill.cost_micros == cost_micros(
        MODEL, bill.iterations, tariff=Tariff(is_batch=True), searches=1
    )
    assert found["usage"]["input_tokens"] == sum(usage.prompt for usage in bill.iterations)
    assert bill.cost_micros < cost_micros(MODEL, bill.iterations, searches=1)


def test_the_answer_is_the_one_the_request_gets_alone(ask: Any, body: Any) -> None:
    made = ask(batch_body(body, "Show me a table"), path=WHERE).json
    alone = ask(body("Show me a table")).json
    found = results(ask, made["id"])["row-0"]["message"]
    assert found["content"] == alone["content"]
    assert found["usage"] | {"service_tier": "standard"} == alone["usage"]


def test_a_request_of_a_batch_may_have_300_000_tokens_of_output(ask: Any, body: Any) -> None:
    def run(**given: Any) -> str:
        made = ask(batch_body(body, "Hello", max_tokens=200_000), path=WHERE, **given).json
        return str(results(ask, made["id"])["row-0"]["type"])

    assert run() == "errored"
    assert run(anthropic_beta="output-300k-2026-03-24") == "succeeded"


def test_thinking_of_another_prefix_is_left_out_in_a_batch(ask: Any, body: Any) -> None:
    model, first = "claude-fable-5-2", {"role": "user", "content": "What do you think?"}
    begun = {"model": model, "max_tokens": 4_000, "messages": [first]}
    answer = {"role": "assistant", "content": ask(begun).json["content"]}
    assert "thinking" in {block["type"] for block in answer["content"]}
    changed = begun | {"system": "changed", "messages": [first, answer, first]}
    assert ask(changed).status == 400
    made = ask({"requests": [{"custom_id": "row-0", "params": changed}]}, path=WHERE).json
    assert results(ask, made["id"])["row-0"]["type"] == "succeeded"


def test_nothing_is_to_be_had_before_it_has_ended(ask: Any, body: Any, clock: Any) -> None:
    ask.emulator.batch_seconds = 60
    made = ask(batch_body(body, "Hello"), path=WHERE).json
    where = f"{WHERE}/{made['id']}"
    assert made["results_url"] is None
    assert ask(path=f"{where}/results", method="GET").status == 404
    assert ask(path=where, method="DELETE").status == 400
    clock.advance(61)
    ended = ask(path=where, method="GET").json
    assert ended["processing_status"] == "ended"
    assert ended["results_url"].endswith(f"{where}/results")
    assert ask(path=f"{where}/cancel", method="POST").status == 400


def test_a_canceled_batch_answers_nothing_and_is_free(ask: Any, body: Any, clock: Any) -> None:
    ask.emulator.batch_seconds = 60
    made = ask(batch_body(body, "Hello", "Hi"), path=WHERE).json
    canceled = ask(path=f"{WHERE}/{made['id']}/cancel", method="POST").json
    assert canceled["processing_status"] == "canceling"
    clock.advance(61)
    counts = ask(path=f"{WHERE}/{made['id']}", method="GET").json["request_counts"]
    assert (counts["canceled"], counts["succeeded"]) == (2, 0)
    assert set(map(str, results(ask, made["id"]).values())) == {"{'type': 'canceled'}"}
    assert ask.emulator.bills == {}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"stream": True}, "stream: streaming is not supported in a batch"),
        ({"max_tokens": 0}, "max_tokens: 0 is not supported in a batch"),
        ({"model": "claude-none"}, "model: claude-none"),
    ],
)
def test_one_bad_request_is_one_errored_result(ask: Any, body: Any, fields: Any, text: str) -> None:
    wanted = batch_body(body, "Hello", "Hello")
    wanted["requests"][1]["params"] |= fields
    found = results(ask, ask(wanted, path=WHERE).json["id"])
    assert found["row-0"]["type"] == "succeeded"
    assert found["row-1"]["error"]["error"]["message"] == text


def test_a_fault_in_a_prompt_is_met_in_a_batch_too(ask: Any, body: Any) -> None:
    made = ask(
        batch_body(body, "emulator:fault=overloaded", "emulator:fault=refusal"), path=WHERE
    ).json
    found = results(ask, made["id"])
    assert found["row-0"]["error"]["error"]["type"] == "overloaded_error"
    assert found["row-1"]["message"]["stop_reason"] == "refusal"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda rows: rows.clear(), "requests: List should have at least 1 item"),
        (lambda rows: rows.append(rows[0]), "requests.1.custom_id: Duplicate custom_id: row-0"),
        (lambda rows: rows[0].update(custom_id="a b"), "requests.0.custom_id: String should match"),
        (lambda rows: rows[0].pop("params"), "requests.0.params: Field required"),
    ],
)
def test_a_batch_that_is_none_is_refused(ask: Any, body: Any, change: Any, text: str) -> None:
    wanted = batch_body(body, "Hello")
    change(wanted["requests"])
    refused = ask(wanted, path=WHERE)
    assert refused.status == 400
    assert refused.message.startswith(text)


def test_another_workspace_does_not_see_a_batch(ask: Any, body: Any) -> None:
    made = ask(batch_body(body, "Hello"), path=WHERE).json
    other = {"method": "GET", "x_api_key": "sk-x@other"}
    assert ask(path=f"{WHERE}/{made['id']}", **other).status == 404
    assert ask(path=WHERE, **other).json["data"] == []
