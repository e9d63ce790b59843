"""A budget taken away in mid-turn: what was admitted ends, no tool runs, the talk goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.utils import timezone

from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer
from conversations.agent import ports
from conversations.agent.events import TurnChanged
from conversations.db import run_db
from conversations.live import render
from conversations.models import ApiCall, Budget, BudgetWindow, ToolCall, Turn, TurnCap, User
from conversations.runtime import supervisor as supervising_module
from conversations.turns import calls
from tests.support import people_and_turns
from tests.support.running_turns import ended, is_valid, queue, run, supervising, unrecorded, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorServer]:
    with server.start(pace=0, record=True) as running:
        yield running


@pytest.fixture(autouse=True)
def _served(emulator: EmulatorServer, settings: Any) -> None:
    emulator.emulator.reset()
    settings.ANTHROPIC_BASE_URL = emulator.url


async def test_a_budget_lowered_in_mid_turn_stops_before_the_next_tool_and_the_talk_goes_on(
    emulator: EmulatorServer, monkeypatch: Any
) -> None:
    turn = await queue("List my files")
    budget = await run_db(
        lambda: people_and_turns.limited(User.objects.get(), 50_000_000, time_zone="Asia/Tokyo")
    )
    close = calls.close_call

    def lowering(**facts: Any) -> Any:
        Budget.objects.filter(pk=budget.pk).update(limit=1)
        return close(**facts)

    monkeypatch.setattr(calls, "close_call", lowering)
    async with supervising() as supervisor:
        stopped = await ended(turn)
        monkeypatch.setattr(calls, "close_call", close)
        assert (stopped.state, stopped.finish_reason) == ("failed", "budget")
        assert "It starts anew on" in stopped.error_text
        assert "at 00:00 (Asia/Tokyo)." in stopped.error_text
        window = await run_db(BudgetWindow.objects.get)
        assert (window.spent, window.held) == (emulator.emulator.billed_micros, 0)
        tool = await run_db(ToolCall.objects.select_related("output").get)
        assert (tool.state, tool.output.text) == ("denied", '"Not run, stopped: budget"')
        assert tool.started_at is None
        await run_db(is_valid, turn.conversation)
        await run_db(lambda: Budget.objects.update(limit=50_000_000))
        again = await run(supervisor, "List my files", turn.conversation)
    assert (again.state, again.finish_reason) == ("done", "end_turn")
    assert await run_db(unrecorded, emulator) == []


async def test_caps_of_a_group_end_a_turn_of_a_member(emulator: EmulatorServer) -> None:
    turn = await queue("Use 3 tools")

    def cap() -> None:
        group = Group.objects.create(name="Research")
        User.objects.get().groups.add(group)
        TurnCap.objects.create(group=group, rounds=1)

    await run_db(cap)
    async with supervising() as supervisor:
        done = await ended(turn)
        assert (done.state, done.finish_reason) == ("done", "loop_limit")
        assert await run_db(ApiCall.objects.filter(turn=turn, purpose="reply").count) == 1
        await run_db(lambda: TurnCap.objects.update(rounds=None, seconds=1))
        slow = await run(supervisor, "Answer in 900 words emulator:pace=0.05", turn.conversation)
    assert (slow.finish_reason, slow.error_code) == ("loop_limit", "turn_time")
    assert await run_db(Turn.objects.count) == 2
    assert supervising_module.supervisor is not supervisor


async def test_a_full_minute_in_mid_turn_is_waited_for_where_people_see_it(
    emulator: EmulatorServer, monkeypatch: Any
) -> None:
    """The clock stands just before the minute's end until the page has shown the wait."""
    now = [datetime(2026, 11, 26, 12, 0, 59, 950_000, tzinfo=UTC)]
    monkeypatch.setattr(timezone, "now", lambda: now[0])
    monkeypatch.setattr(ports, "WAIT_SPREAD", 0.0)
    monkeypatch.setattr(ports, "MOST_WAITS", 1_000_000)
    turn = await queue("List my files")
    limit = {"scope": "site", "unit": "requests", "period": "minute", "limit": 1}
    await run_db(lambda: Budget.objects.create(**limit))
    waiting = Turn.objects.filter(state="backoff", waits_for="requests 1")
    async with supervising():
        await until(waiting.exists)
        read = partial(render.render_events, turn.conversation_id, TurnChanged(1), language="en")
        while "The limit of 1 request a minute is reached. It goes on" not in await run_db(read):
            await asyncio.sleep(0.01)
        assert await run_db(ApiCall.objects.count) == 1
        now[0] += timedelta(seconds=1)
        done = await ended(turn)
    assert (done.state, done.waits_for, done.retry_at) == ("done", "", None)
    rows = await run_db(lambda: list(BudgetWindow.objects.order_by("pk").values_list("spent")))
    assert rows == [(1,), (1,)]
