"""RELIABILITY.md, group A: limits and outages that many users wait for, shown on their pages."""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import AsyncExitStack
from typing import Any

import pytest

from conversations.claude.errors import MOST_FAILURES
from conversations.db import run_db
from conversations.models import ApiCall, ApiResult, Turn
from tests.faults.oracle import check_everything
from tests.faults.running_app import App, Chat
from tests.support.running_turns import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


@pytest.mark.parametrize("fault", ["spend400", "spend_limit"])
async def test_f3_f9_a_spend_limit_pauses_everybody_and_alerts_one_administrator(
    app: App, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    async with app.chat() as first, app.chat() as second:
        turn = await first.say(f"Hello emulator:fault={fault}")
        assert (turn.state, turn.error_code) == ("failed", "billing")
        assert app.statuses == [429 if fault == "spend_limit" else 400]
        for chat in (first, second):
            turn = await chat.say("Hello")
            assert (turn.state, turn.error_code) == ("failed", "billing")
            assert "Calls pause for everybody" in chat.text(turn.number)
            assert re.search(r"try again in (5\d|60) seconds", chat.text(turn.number))
        assert len(app.statuses) == 1
        app.clock.ahead += 61
        assert (await second.say("Hello")).state == "done"
        await check_everything(first)
    lines = [row for row in caplog.records if row.name == "agentweb.alerts"]
    assert [row.levelno for row in lines] == [logging.ERROR]
    assert "specified API usage limits" in lines[0].getMessage()
    assert "sk-test" not in caplog.text


@pytest.mark.parametrize("fault", ["authentication", "permission", "billing"])
async def test_f4_a_bad_key_is_one_alert_whatever_the_number_of_users(
    app: App, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    for _ in range(3):
        async with app.chat() as chat:
            await chat.say(f"Hello emulator:fault={fault}")
            assert "sk-" not in chat.text(1)
    assert len([row for row in caplog.records if row.name == "agentweb.alerts"]) == 1
    assert "sk-test" not in caplog.text


async def test_f7_a_rate_limit_is_waited_for_in_sight(app: App, settings: Any) -> None:
    settings.AGENTWEB_MAX_BACKOFF_SECONDS = 60
    async with app.chat() as chat:
        turn = await chat.send("Hello emulator:fault=rate_limited:2:x1")
        await until(lambda: Turn.objects.filter(state="backoff", retry_at__isnull=False).exists())
        turn = await chat.ended(turn)
        assert (turn.state, turn.attempt) == ("done", 2)
        first, second = app.emulator.emulator.log
        assert (first.status, second.status) == (429, 200)
        assert second.at - first.at >= 2
        assert any("Attempt 2 of 4" in shown for shown in chat.shown)
        await check_everything(chat)


async def test_f7_a_stop_ends_the_wait(app: App, settings: Any) -> None:
    # The wait is never reached: the test stops the turn.
    settings.AGENTWEB_MAX_BACKOFF_SECONDS = 900
    async with app.chat() as chat:
        turn = await chat.send("Hello emulator:fault=rate_limited:600")
        await until(lambda: Turn.objects.filter(state="backoff").exists())
        await chat.post("stop")
        turn = await chat.ended(turn)
        assert (turn.state, turn.finish_reason) == ("cancelled", "stopped")
        assert app.statuses == [429]
        await check_everything(chat)


async def test_f8_a_long_wait_frees_the_turn_at_once(app: App) -> None:
    async with app.chat() as chat:
        turn = await chat.say("Hello emulator:fault=rate_limited:3600")
        assert turn.state == "failed"


async def test_f10_a_burst_of_users_opens_the_circuit_and_a_probe_closes_it(app: App) -> None:
    async with app.chat() as chat, app.chat() as other:
        for number in range(2):
            turn = await chat.say(f"Hello {number} emulator:fault=api_error")
            assert turn.error_code == "upstream"
        assert len(app.statuses) == MOST_FAILURES
        turn = await other.say("Hello")
        assert (turn.state, turn.error_code) == ("failed", "upstream")
        assert "Calls pause for everybody; try again in" in other.text(1)
        assert len(app.statuses) == MOST_FAILURES
        app.clock.ahead += 5
        assert (await other.say("Hello")).state == "done"
        assert (await chat.say("Hello")).state == "done"
        await check_everything(chat)
        await check_everything(other)


async def test_f10_of_many_users_at_once_nobody_asks_on_while_calls_pause(app: App) -> None:
    async with AsyncExitStack() as stack:
        chats = [await stack.enter_async_context(app.chat()) for _ in range(12)]
        turns = await asyncio.gather(*(crash(chat) for chat in chats))
        assert {(turn.state, turn.error_code) for turn in turns} == {("failed", "upstream")}
        made = await run_db(ApiCall.objects.count)
        assert MOST_FAILURES <= len(app.statuses) <= len(chats) + MOST_FAILURES
        assert len(app.statuses) < made
        assert any("Calls pause for everybody" in chat.text(1) for chat in chats)
        app.clock.ahead += 61
        for chat in chats:
            assert (await chat.say("Hello")).state == "done"
        await check_everything(chats[0])


async def crash(chat: Chat) -> Turn:
    return await chat.say("Hello emulator:fault=unavailable")


async def test_f10_waits_differ_between_users_and_have_a_cap(app: App, settings: Any) -> None:
    settings.AGENTWEB_MAX_BACKOFF_SECONDS = 60
    async with AsyncExitStack() as stack:
        chats = [await stack.enter_async_context(app.chat()) for _ in range(3)]
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(watched(len(chats)))
            for number, chat in enumerate(chats):
                turn = await chat.say(f"Hello {number} emulator:fault=api_error:x1")
                assert (turn.state, turn.attempt) == ("done", 2)
                assert any("Attempt 2 of 4" in shown for shown in chat.shown)
        waits = watching.result()
        assert len({round(wait, 3) for wait in waits}) == len(waits)
        assert all(0.7 < wait < 8 * 1.25 for wait in waits)
        await check_everything(chats[0])


async def watched(count: int) -> list[float]:
    """Wait until `count` turns have waited; return for how many seconds each was to wait."""
    waits: dict[int, float] = {}
    async with asyncio.timeout(120):
        while len(waits) < count:
            waits |= await run_db(waiting)
            await asyncio.sleep(0.05)
    return list(waits.values())


def waiting() -> dict[int, float]:
    """Return how long each turn waits, from the end of the call that failed."""
    rows = Turn.objects.filter(state="backoff", retry_at__isnull=False)
    ended = dict(ApiResult.objects.values_list("call__turn", "ended_at"))
    return {row.pk: (row.retry_at - ended[row.pk]).total_seconds() for row in rows if row.retry_at}


async def test_f17_a_trickle_works_and_harms_nobody(app: App) -> None:
    async with app.chat() as slow, app.chat() as quick:
        turn = await slow.send("Hello emulator:fault=dribble:0.4")
        await until(lambda: Turn.objects.filter(state="running").exists())
        other = await quick.say("Hello")
        assert other.state == "done"
        assert (await slow.ended(turn)).state == "done"
        await check_everything(slow)


async def test_f17_a_trickle_without_end_ends_at_the_deadline(app: App) -> None:
    async with app.chat() as chat:
        async with app.hurrying():
            turn = await chat.say("Answer in 300 words emulator:fault=dribble:100")
        assert (turn.state, turn.error_code) == ("failed", "timeout")
        await check_everything(chat)


async def test_f18_a_connection_that_stays_open_does_not_hold_the_turn(app: App) -> None:
    async with app.chat() as chat:
        # Deadlines are longer than this test waits.
        assert (await chat.say("Hello emulator:fault=after_stop")).state == "done"
