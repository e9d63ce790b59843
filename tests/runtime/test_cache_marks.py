"""Through the whole app: what the prompt cache reads after a wide round, and what is counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone

from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer
from conversations.agent.usage import read_usage
from conversations.budgets.affordability import size_call
from conversations.budgets.prices import load_price_list
from conversations.context.policy import cache_lifetime
from conversations.context.view import cache_breakpoints, wire
from conversations.context.view.envelope import read_lifetime
from conversations.context.view.view import Message
from conversations.db import run_db
from conversations.log.rebuild import rebuild_request
from conversations.log.turn_state import load_state
from conversations.models import ApiCall, ApiModel, ApiResult, Budget, Conversation
from tests.support.running_turns import is_valid, run, supervising
from tests.support.stored_turns import MODEL

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
    assert (one.count(cache_breakpoints.MARKS["5m"]), two.count(cache_breakpoints.MARKS["5m"])) == (
        2,
        3,
    )
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


@pytest.fixture
def _long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """People of whom is expected that they come back within the hour: tests have no such time."""
    monkeypatch.setattr(cache_lifetime, "_USUAL", 100)


@pytest.mark.usefixtures("_long_pauses")
async def test_a_chat_with_pauses_is_cached_for_an_hour_and_its_bill_is_exact(
    emulator: EmulatorServer,
) -> None:
    async with supervising() as supervisor:
        turn = await run(supervisor, "Hello " * 3_000)
        chat = turn.conversation
        for number in range(2):
            turn = await run(supervisor, f"Hello again {number} " * 200, chat)
            assert turn.state == "done"

    def seen() -> list[tuple[str, int, int]]:
        rows = ApiResult.objects.filter(call__conversation=chat).order_by("pk")
        found = rows.select_related("call__envelope")
        written = [(row, read_usage(wire.decode(row.usage))) for row in found]
        return [
            (row.call.envelope.text, usage.cache_write_5m, usage.cache_write_1h)
            for row, usage in written
        ]

    calls = await run_db(seen)
    assert [read_lifetime(text) for text, *_ in calls] == ["5m", "1h", "5m"]
    for text, short, long in calls:
        assert (short == 0, long == 0) == (read_lifetime(text) == "1h", read_lifetime(text) == "5m")
    state = await run_db(load_state, await run_db(Conversation.objects.get), MODEL)
    # The second call pays for the hour of all before it, so the third need not.
    assert 3_000 < state.cached.seconds <= 3_600
    assert state.cached.tokens > 3_000
    assert (state.calls, len(state.pauses)) == (3, 2)
    costs = await run_db(lambda: sum(ApiResult.objects.values_list("cost_micros", flat=True)))
    assert costs == emulator.emulator.billed_micros > 0
    await run_db(is_valid, chat)


@pytest.mark.usefixtures("_long_pauses")
async def test_where_an_hour_is_too_dear_the_call_is_made_with_five_minutes(
    emulator: EmulatorServer,
) -> None:
    def limit_money() -> None:
        last = ApiCall.objects.filter(conversation=chat).latest("pk")
        prices, size = load_price_list(MODEL, timezone.now()), last.estimated_tokens + 100
        short, long = (size_call(prices, size, lifetime=name).cost for name in ("5m", "1h"))
        Budget.objects.create(user=chat.owner, is_active=True, limit=(short + long) // 2)

    async with supervising() as supervisor:
        turn = await run(supervisor, "Hello " * 3_000)
        chat = turn.conversation
        await run(supervisor, "Hello again", chat)
        await run_db(limit_money)
        turn = await run(supervisor, "And now?", chat)
    assert turn.state == "done", turn.error_text
    calls = await run_db(
        lambda: list(ApiCall.objects.select_related("envelope").order_by("pk").all())
    )
    assert [read_lifetime(call.envelope.text) for call in calls] == ["5m", "1h", "5m"]
    await run_db(is_valid, chat)
