"""The official SDK, unmodified, against a running emulator."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import httpx2
import pytest
import pytest_asyncio

from agentweb.emulator.server import EmulatorServer
from tests.emulator.samples import TEXT, TOOL, user

MODEL = "claude-sonnet-5-5"
HELLO: Any = [{"role": "user", "content": "Hello"}]
LIST: Any = [{"role": "user", "content": "list files"}]
OFFERED: Any = [TOOL | {"name": "list_files"}]

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def client(served: EmulatorServer) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(
        api_key="sk-test", base_url=served.url, max_retries=0
    ) as opened:
        yield opened


async def test_create(client: anthropic.AsyncAnthropic) -> None:
    message = await client.messages.create(model=MODEL, max_tokens=500, messages=HELLO)
    assert message.stop_reason == "end_turn"
    assert message.content[0].type == "text"
    assert message.usage.cache_creation is not None


async def test_the_streaming_helper(client: anthropic.AsyncAnthropic) -> None:
    parts = []
    async with client.messages.stream(model=MODEL, max_tokens=500, messages=HELLO) as stream:
        parts = [text async for text in stream.text_stream]
        final = await stream.get_final_message()
    assert len(parts) > 3
    assert "".join(parts) == await _text(final)


async def _text(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


async def test_a_tool_round_with_thinking_sent_back(client: anthropic.AsyncAnthropic) -> None:
    messages: Any = list(LIST)
    for _ in range(2):
        async with client.messages.stream(
            model=MODEL,
            max_tokens=500,
            messages=messages,
            tools=OFFERED,
            thinking={"type": "adaptive"},
        ) as stream:
            answer = await stream.get_final_message()
        messages.append({"role": "assistant", "content": [b.to_dict() for b in answer.content]})
        if answer.stop_reason != "tool_use":
            break
        call = next(block for block in answer.content if block.type == "tool_use")
        messages.append(user({"type": "tool_result", "tool_use_id": call.id, "content": "a.txt"}))
    assert answer.stop_reason == "end_turn"
    assert "a.txt" in await _text(answer)


async def test_counting_equals_what_is_billed(client: anthropic.AsyncAnthropic) -> None:
    counted = await client.messages.count_tokens(model=MODEL, messages=HELLO, tools=OFFERED)
    message = await client.messages.create(
        model=MODEL, max_tokens=100, messages=HELLO, tools=OFFERED
    )
    assert counted.input_tokens == message.usage.input_tokens


async def test_the_models(client: anthropic.AsyncAnthropic) -> None:
    ids = [model.id async for model in client.models.list(limit=4)]
    assert len(ids) == len(set(ids)) >= 17
    model = await client.models.retrieve("claude-haiku-5-5")
    assert (model.max_input_tokens, model.lifecycle) == (1_000_000, "active")
    assert model.capabilities is not None
    assert model.capabilities.thinking.types.adaptive.supported


async def test_our_own_bytes_are_what_arrives(
    client: anthropic.AsyncAnthropic, served: EmulatorServer
) -> None:
    raw = b'{"model": "claude-sonnet-5-5","max_tokens":50,"stream":true,'
    raw += b'"messages":[{"role":"user","content":"Hi"}]}'
    stream = await client.post(
        "/v1/messages",
        content=raw,
        cast_to=anthropic.types.Message,
        options={"headers": {"content-type": "application/json"}},
        stream=True,
        stream_cls=anthropic.AsyncStream[anthropic.types.RawMessageStreamEvent],
    )
    names = [event.type async for event in stream]
    assert (names[0], names[-1]) == ("message_start", "message_stop")
    assert served.emulator.log[-1].body == raw


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("bad_request", anthropic.BadRequestError),
        ("authentication", anthropic.AuthenticationError),
        ("permission", anthropic.PermissionDeniedError),
        ("not_found", anthropic.NotFoundError),
        ("too_large", anthropic.RequestTooLargeError),
        ("rate_limited:1", anthropic.RateLimitError),
        ("overloaded", anthropic.OverloadedError),
        ("api_error", anthropic.InternalServerError),
    ],
)
async def test_a_status_is_the_error_of_the_sdk(
    client: anthropic.AsyncAnthropic, fault: str, error: type[anthropic.APIStatusError]
) -> None:
    with pytest.raises(error) as caught:
        await client.messages.create(
            model=MODEL, max_tokens=50, messages=HELLO, extra_headers={"x-emulator-fault": fault}
        )
    if fault != "too_large":
        assert caught.value.request_id


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("error_after:2", anthropic.APIStatusError),
        ("cut_after:2", httpx2.RemoteProtocolError),
        ("reset_after:2", httpx2.ReadError),
        ("bad_sse", ValueError),
        ("bad_json_tool", ValueError),
        ("html200", AssertionError),
        ("no_start", (AssertionError, RuntimeError)),
    ],
)
async def test_a_broken_stream_breaks_the_sdk_as_measured(
    client: anthropic.AsyncAnthropic, fault: str, error: Any
) -> None:
    """Section 11: exactly the exceptions that the sheet reports."""
    with pytest.raises(error):
        async with client.messages.stream(
            model=MODEL, max_tokens=500, messages=HELLO, extra_headers={"x-emulator-fault": fault}
        ) as stream:
            await stream.get_final_message()


async def test_a_clean_early_end_looks_like_an_answer_without_a_stop_reason(
    client: anthropic.AsyncAnthropic,
) -> None:
    async with client.messages.stream(
        model=MODEL,
        max_tokens=500,
        messages=HELLO,
        extra_headers={"x-emulator-fault": "end_after:2"},
    ) as stream:
        assert (await stream.get_final_message()).stop_reason is None


async def test_the_retries_of_the_sdk_get_through(served: EmulatorServer) -> None:
    async with anthropic.AsyncAnthropic(
        api_key="sk-test", base_url=served.url, max_retries=2
    ) as patient:
        prompt: Any = [{"role": "user", "content": "Hello emulator:fault=rate_limited:0:x1"}]
        message = await patient.messages.create(model=MODEL, max_tokens=200, messages=prompt)
    assert message.stop_reason == "end_turn"


async def test_a_hanging_answer_meets_the_deadline_of_the_client(
    client: anthropic.AsyncAnthropic,
) -> None:
    with pytest.raises(anthropic.APITimeoutError):
        await client.messages.create(
            model=MODEL,
            max_tokens=50,
            messages=HELLO,
            timeout=0.2,
            extra_headers={"x-emulator-fault": "hang"},
        )


async def test_compaction_on_demand_and_its_block_sent_back(
    client: anthropic.AsyncAnthropic,
) -> None:
    history: Any = [user(TEXT | {"text": "My code name is AB-1234, remember it."})]
    order: Any = {"type": "summarize"}
    betas: Any = ["compact-2026-09-04"]
    made = await client.beta.messages.create(
        model=MODEL, max_tokens=4_096, messages=history, compaction=order, betas=betas
    )
    block = made.content[0]
    assert (made.stop_reason, block.type) == ("compaction", "compaction")
    again: Any = [{"role": "assistant", "content": [block.to_dict()]}, user(TEXT)]
    answer = await client.beta.messages.create(
        model=MODEL, max_tokens=500, messages=again, betas=betas
    )
    assert answer.stop_reason == "end_turn"


async def test_fifty_conversations_at_once(client: anthropic.AsyncAnthropic) -> None:
    async def one(number: int) -> str:
        prompt: Any = [{"role": "user", "content": f"Hello number {number}: show a table"}]
        async with client.messages.stream(model=MODEL, max_tokens=900, messages=prompt) as stream:
            return (await stream.get_final_message()).stop_reason or ""

    assert set(await asyncio.gather(*(one(n) for n in range(50)))) == {"end_turn"}
