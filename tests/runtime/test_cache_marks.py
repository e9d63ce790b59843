"""Through the whole app: what the prompt cache reads after a wide round, and what is counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer
from conversations.context.view import cache_breakpoints
from conversations.context.view.view import Message
from conversations.db import run_db
from conversations.log.rebuild import rebuild_request
from conversations.models import ApiCall, ApiModel, ApiResult
from tests.support.running_turns import is_valid, run, supervising

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


@pytest.fixture
def emulator(settings: Any) -> Iterator[EmulatorServer]:
    with server.start(pace=0, record=True) as running:
        settings.ANTHROPIC_BASE_URL = running.url
        yield running


async def test_a_round_of_fifteen_calls_reads_the_prefix_and_is_verified(
    emulator: EmulatorServer,
) -> None:
    async with supervising() as supervisor:
        turn = await run(supervisor, "Use 15 tools")
    assert turn.state == "done"

    def seen() -> tuple[list[ApiResult], list[str]]:
        results = ApiResult.objects.filter(call__turn=turn).select_related("call").order_by("pk")
        return list(results), [rebuild_request(result.call).body for result in results]

    (first, second, *_), (one, two, *_) = await run_db(seen)
    assert second.cache_read_tokens == (first.cache_read_tokens or 0) + first.cache_write_tokens
    assert (one.count(cache_breakpoints.MARK), two.count(cache_breakpoints.MARK)) == (2, 3)
    await run_db(is_valid, turn.conversation)


async def test_a_request_near_the_window_is_counted_and_its_answer_kept_within_it(
    emulator: EmulatorServer,
) -> None:
    text = "Hello " * 12_000
    window = (
        Message.parse(1, "prompt", f'[{{"type":"text","text":"{text}"}}]').tokens * 13 // 10 + 4_000
    )
    await run_db(lambda: ApiModel.objects.update(window=window))
    async with supervising() as supervisor:
        turn = await run(supervisor, text)
    assert turn.state == "done"
    call = await run_db(lambda: ApiCall.objects.select_related("result").get(turn=turn))
    result = call.result
    assert call.estimated_tokens == result.input_tokens + (result.cache_write_tokens or 0)
    assert call.estimated_tokens + call.max_tokens <= window
    paths = [row.path for row in emulator.emulator.log]
    assert paths == ["/v1/messages/count_tokens", "/v1/messages"]
    await run_db(is_valid, turn.conversation)
