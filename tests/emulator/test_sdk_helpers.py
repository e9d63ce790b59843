"""The SDK's own agent loop and its compaction helper, unmodified, against a running emulator."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anthropic
import pytest
import pytest_asyncio
from anthropic import beta_async_tool

from agentweb.emulator.server import EmulatorServer

MODEL = "claude-sonnet-5-5"
pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def client(served: EmulatorServer) -> AsyncIterator[anthropic.AsyncAnthropic]:
    served.emulator.reset()
    async with anthropic.AsyncAnthropic(
        api_key="sk-test", base_url=served.url, max_retries=0
    ) as opened:
        yield opened


def lister(calls: list[str]) -> Any:
    @beta_async_tool
    async def list_files(path: str = "") -> str:
        """List the files of a folder."""
        calls.append(path)
        return "a.txt\nb.txt"

    return list_files


def text_of(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


async def test_the_tool_runner_runs_to_its_last_word(
    client: anthropic.AsyncAnthropic, served: EmulatorServer
) -> None:
    calls: list[str] = []
    runner = client.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=1_000,
        thinking={"type": "adaptive"},
        tools=[lister(calls)],
        messages=[{"role": "user", "content": "list files"}],
    )
    answers = [message async for message in runner]
    assert [answer.stop_reason for answer in answers] == ["tool_use", "end_turn"]
    assert len(calls) == 1
    assert "b.txt" in text_of(answers[-1])
    # No conversation is kept between requests: the first thread request is refused, once.
    assert [row.status for row in served.emulator.log] == [400, 200, 200]


async def test_the_streaming_tool_runner_does_the_same(client: anthropic.AsyncAnthropic) -> None:
    calls: list[str] = []
    runner = client.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=1_000,
        tools=[lister(calls)],
        messages=[{"role": "user", "content": "list files"}],
        stream=True,
    )
    reasons = []
    async for stream in runner:
        async with stream:
            reasons.append((await stream.get_final_message()).stop_reason)
    assert reasons == ["tool_use", "end_turn"]
    assert len(calls) == 1


async def test_the_compaction_helper_compacts_between_two_turns_of_the_runner(
    client: anthropic.AsyncAnthropic, served: EmulatorServer
) -> None:
    calls: list[str] = []
    runner = client.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=4_096,
        tools=[lister(calls)],
        messages=[{"role": "user", "content": "My code name is AB-1234. Please list files"}],
        betas=["compact-2026-09-04"],
    )
    answers = []
    async for message in runner:
        answers.append(message)
        if len(answers) == 1:
            runner.compact_before_next_turn()
    assert [answer.stop_reason for answer in answers][:2] == ["tool_use", "compaction"]
    assert answers[-1].stop_reason in ("end_turn", "tool_use")
    block = answers[1].content[0]
    assert block.type == "compaction"
    assert "AB-1234" in (block.content or "")
    assert served.emulator.log[0].status == 400
    assert {row.status for row in served.emulator.log[1:]} == {200}
    # The next request consists of the block alone, and its answer is billed as usual.
    assert b'"compaction"' in served.emulator.log[-1].body
    assert len(served.emulator.bills) == len(answers)


async def test_the_sdk_reads_a_search_its_citations_and_what_is_told_beside_it(
    client: anthropic.AsyncAnthropic,
) -> None:
    tool: Any = {"type": "web_search_20260318", "name": "web_search", "max_uses": 20}
    messages: Any = [{"role": "user", "content": "search the web 12 times for tea"}]
    reasons, cited, named = [], [], None
    for _ in range(2):
        async with client.messages.stream(
            model=MODEL,
            max_tokens=2_000,
            tools=[tool],
            messages=messages,
            diagnostics={"previous_message_id": named},
        ) as stream:
            answer = await stream.get_final_message()
        reasons.append(answer.stop_reason)
        cited += [c for b in answer.content if b.type == "text" for c in b.citations or ()]
        assert answer.usage.server_tool_use is not None
        assert answer.diagnostics is None
        named = answer.id
        messages.append(answer.to_param())
    assert reasons == ["pause_turn", "end_turn"]
    assert [citation.type for citation in cited] == ["web_search_result_location"]


async def test_the_sdk_reads_why_the_cache_missed_and_the_container(
    client: anthropic.AsyncAnthropic,
) -> None:
    asked: Any = {
        "model": MODEL,
        "max_tokens": 500,
        "messages": [{"role": "user", "content": "run code: print('hi')"}],
        "tools": [{"type": "code_execution_20260521", "name": "code_execution"}],
    }
    first = await client.messages.create(**asked, diagnostics={"previous_message_id": None})
    assert first.container is not None
    second = await client.messages.create(
        **asked, system="Other", diagnostics={"previous_message_id": first.id}
    )
    assert second.diagnostics is not None
    assert second.diagnostics.cache_miss_reason is not None
    assert second.diagnostics.cache_miss_reason.type == "system_changed"
