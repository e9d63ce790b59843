"""Nothing sent is free: a hundred calls stopped, cut off in time, or thinking out of sight.

The reference is the emulator's bill, made on the other side of the wire from what it has sent and
thought. The ledger is never below it. Above it by at most: IN_FLIGHT tokens of answer, and where
the answer thought, TOKENS_PER_SECOND of its time; without any event, what was held for the request
and IN_FLIGHT tokens.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest

from agentweb.emulator import server
from agentweb.emulator.app import create_app
from agentweb.emulator.clock import VirtualClock
from agentweb.emulator.delivery import THINKING_SPEED
from agentweb.emulator.scenes import SCENES
from agentweb.emulator.scenes.scene import Reply, Text, Think
from agentweb.emulator.scenes.view import Request
from agentweb.emulator.server import EmulatorServer
from conversations.agent.call import attempt_call
from conversations.agent.ports import NO_HEADERS, Head, Headers, ModelFailed, Piece, Sending
from conversations.agent.stop import Stopped, Switch
from conversations.budgets.affordability import pad_estimate
from conversations.budgets.prices import load_price_list
from conversations.context.tokens.estimate import estimate_text
from conversations.context.view import wire
from conversations.db import run_db
from conversations.models import ApiResult
from conversations.runtime.adapters import TurnCalls
from conversations.turns.billed_usage import IN_FLIGHT, TOKENS_PER_SECOND, Timing
from tests.faults.oracle import settled
from tests.faults.random_calls import ApiClient
from tests.faults.talks import WORDS, Talk
from tests.faults.test_bills import check_money, started_turn

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
STOPS = 100
#: Tokens that the answer thinks out of sight, and seconds until it is stopped.
THOUGHT, SECONDS = 1_500, 20


def scene(request: Request) -> Reply | None:
    if request.prompt.startswith("Think"):
        return Reply((Think("I look at it.", THOUGHT), Text(WORDS)))
    return Reply((Text(WORDS * 6),)) if request.prompt.startswith("Write") else None


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def emulator(clock: VirtualClock) -> Iterator[EmulatorServer]:
    with server.start(app=create_app(clock=clock, scenes=[scene, *SCENES])) as running:
        yield running


@dataclass
class StoppedModel:
    """A Model port whose person stops at the first events, or as soon as is_early says so."""

    calls: TurnCalls
    switch: Switch
    is_early: Callable[[], bool] | None
    before: Callable[[], None]

    async def stream(
        self, body: str, headers: Headers = NO_HEADERS
    ) -> AsyncGenerator[Head | Piece, None]:
        loop = asyncio.get_running_loop()
        watching = loop.create_task(self._stop_early(self.is_early)) if self.is_early else None
        try:
            async with aclosing(self.calls.stream(body, headers)) as stream:
                async for item in stream:
                    if isinstance(item, Piece):
                        self.before()
                        loop.call_soon(self.switch.request, "user")
                    yield item
        finally:
            if watching:
                watching.cancel()

    async def _stop_early(self, is_early: Callable[[], bool]) -> None:
        while not is_early():
            await asyncio.sleep(0.005)
        self.switch.request("user")

    async def count(self, body: str, headers: Headers = NO_HEADERS) -> int | None:
        return None


async def stop(
    client: ApiClient,
    talk: Talk,
    *,
    is_early: Callable[[], bool] | None = None,
    before: Callable[[], None] = lambda: None,
) -> ApiResult:
    """Make a call and stop it; return its result."""
    switch = Switch()
    ports = client.ports("", 1)
    ports = replace(ports, model=StoppedModel(ports.calls, switch, is_early, before), switch=switch)  # type: ignore[arg-type]
    made, messages = talk.envelope(8_000), wire.encode(talk.messages)
    size = made.overhead + estimate_text(messages)
    sent = await ports.calls.open(Sending("summary", made, messages, size, None, 1))
    with pytest.raises(Stopped):
        await attempt_call(ports, sent)
    return await run_db(ApiResult.objects.select_related("call").get, call=sent.call)


def bound(row: ApiResult, *, is_unanswered: bool = False) -> int:
    """Return the most that the ledger may be above the bill."""
    prices = load_price_list(row.call.model, row.call.sent_at)
    read = pad_estimate(row.call.estimated_tokens) if is_unanswered else 0
    milliseconds = row.duration_ms - (row.first_event_ms or 0)
    return prices.worst(read, IN_FLIGHT + 1 + milliseconds * TOKENS_PER_SECOND // 1_000)


async def test_a_hundred_stopped_and_repeated_calls_cost_at_least_their_bills(
    emulator: EmulatorServer, clock: VirtualClock
) -> None:
    client = ApiClient(await run_db(started_turn), emulator.url, clock, Random(7))
    talk = Talk("claude-sonnet-5-5", "5m", WORDS * 90)
    talk.say("Write something. ")
    rows, faults = [], emulator.emulator.ordered_faults
    for number in range(STOPS):
        if number % 5 == 0:
            faults[:] = ["hang"]
            # Stopped once the request has come: one on its way would take the next one's fault.
            rows.append(await stop(client, talk, is_early=lambda: not faults))
        else:
            faults[:] = [f"hang_after:{number % 5 - 1}"]
            rows.append(await stop(client, talk))
    await client.close()
    await settled(emulator)
    bills = emulator.emulator.bills
    await run_db(compare, rows, {key: bill.cost_micros for key, bill in bills.items()})


def compare(rows: list[ApiResult], bills: dict[str, int]) -> None:
    unanswered = [row for row in rows if row.request_id not in bills]
    assert len(unanswered) == STOPS // 5
    for row in rows:
        bill = bills.pop(row.request_id, 0)
        above = row.cost_micros - bill
        assert row.cost_basis == "estimated"
        assert row.cost_micros > 0
        assert 0 <= above <= bound(row, is_unanswered=row in unanswered), (row.pk, bill)
    assert bills == {}
    check_money(sum(row.cost_micros for row in rows))


async def test_a_call_that_is_late_costs_at_least_its_input(
    emulator: EmulatorServer, clock: VirtualClock
) -> None:
    client = ApiClient(await run_db(started_turn), emulator.url, clock, Random(7))
    talk = Talk("claude-sonnet-5-5", "1h", WORDS * 90)
    talk.say("Write something. ")
    emulator.emulator.ordered_faults[:] = ["hang"] * 3
    ports = client.ports("hang", 1)
    made, messages = talk.envelope(400), wire.encode(talk.messages)
    sent = await ports.calls.open(Sending("summary", made, messages, 900, None, 1))
    with pytest.raises(ModelFailed, match="in time"):
        await attempt_call(ports, sent)
    await client.close()
    row = await run_db(ApiResult.objects.select_related("call").get)
    prices = await run_db(load_price_list, row.call.model, row.call.sent_at)
    assert row.cost_micros >= prices.rate("input", 0) * 900 // 10**6 > 0
    await run_db(check_money, row.cost_micros)


async def test_thinking_out_of_sight_costs_at_least_its_bill(
    emulator: EmulatorServer, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = clock.now()
    monkeypatch.setattr(
        TurnCalls, "_timing", lambda _: Timing(0, round((clock.now() - began) * 1_000))
    )
    client = ApiClient(await run_db(started_turn), emulator.url, clock, Random(7))
    talk = Talk("claude-sonnet-5-5", "5m", WORDS * 90)
    talk.say("Think about it. ")
    emulator.emulator.ordered_faults[:] = ["hang_after:1"]
    row = await stop(client, talk, before=lambda: clock.advance(SECONDS))
    await client.close()
    await settled(emulator)
    (bill,) = emulator.emulator.bills.values()
    # The emulator has billed what was thought by then, which the stream did not show.
    assert bill.iterations[-1].output >= min(THOUGHT, SECONDS * THINKING_SPEED) - 50
    most: Any = await run_db(bound, row)
    assert 0 <= row.cost_micros - bill.cost_micros <= most
    await run_db(check_money, row.cost_micros)
