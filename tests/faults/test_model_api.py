"""RELIABILITY.md, group A: every fault of the API, from the socket of a page to the emulator."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from conversations.db import db
from conversations.endings import LEFT_OUT, WRONG_CALLS
from conversations.failures import MOST_FAILURES
from conversations.models import ApiCall, ApiResult, BudgetWindow, ToolCall, Turn
from tests.faults.whole import App, check_everything, check_rows, files, reductions
from tests.running import said, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


@dataclass(frozen=True)
class Row:
    """A row of the matrix: the fault asked for, and what must come of it."""

    name: str
    fault: str
    #: State, finish reason and error code of the turn.
    end: tuple[str, str, str]
    #: Requests that are made.
    requests: int
    #: What the page says.
    says: str = ""
    words: str = "Answer in 200 words"
    #: Whether the answer's text, or a part of it, is kept.
    keeps: bool = False
    settings: dict[str, Any] = field(default_factory=dict)


DONE = ("done", "end_turn", "")
BUSY = ("failed", "", "overloaded")
DOWN = ("failed", "", "upstream")
CUT = ("failed", "", "cut")
ODD = ("failed", "", "protocol_error")
LATE = ("failed", "", "timeout")
PAUSED = "emulator:fault=pause_turn:empty"
ROWS = [
    Row("F1", "bad_request", ("failed", "", "invalid_request"), 1, "refused on purpose"),
    Row("F2 nothing to reduce", "overflow", ("failed", "context", "overflow"), 1, "too long"),
    Row("F4 key", "authentication", ("failed", "", "authentication"), 1, "administrator"),
    Row("F4 right", "permission", ("failed", "", "permission"), 1, "administrator"),
    Row("F4 money", "billing", ("failed", "", "billing"), 1, "administrator"),
    Row("F5", "not_found", ("failed", "", "not_found"), 1, "AGENTWEB_MODEL"),
    Row("F6", "too_large", ("failed", "context", "overflow"), 1, "too long"),
    Row("F8", "rate_limited:3600", ("failed", "", "rate_limited"), 1, "rate limit"),
    Row("F10 500", "api_error", DOWN, 4, "The API failed"),
    Row("F10 500 once", "api_error:x1", DONE, 2, keeps=True),
    Row("F10 503", "unavailable:x2", DONE, 3, keeps=True),
    Row("F10 504", "timeout:x3", DONE, 4, keeps=True),
    Row("F10 529", "overloaded", BUSY, 4, "overloaded"),
    Row("F11", "error_first", BUSY, 4, "overloaded"),
    Row("F11 once", "error_first:x1", DONE, 2, keeps=True),
    Row("F12", "error_after:30", BUSY, 1, "overloaded", keeps=True),
    Row("F12 500", "api_error_after:30", DOWN, 1, "The API failed", keeps=True),
    Row("F14 cut", "cut_after:30", CUT, 1, "was cut", keeps=True),
    Row("F14 reset", "reset_after:30", CUT, 1, "was cut", keeps=True),
    Row("F14 clean end", "end_after:30", CUT, 1, "mid-answer", keeps=True),
    Row("F14 before its stop", "end_before_stop", CUT, 1, keeps=True),
    Row("F15", "hang", LATE, 4, "in time"),
    Row("F15 once", "hang:x1", DONE, 2, keeps=True),
    Row("F16 silence", "hang_after:30", LATE, 1, "in time", keeps=True),
    Row("F16 pings", "pings:30", LATE, 1, "in time", keeps=True),
    Row("F18", "after_stop", DONE, 1, keeps=True),
    Row("F18 twice", "duplicate_stop", DONE, 1, keeps=True),
    Row("F19", "max_tokens", ("done", "max_tokens", ""), 1, "Cut at the length limit", keeps=True),
    Row("F20 text", "max_tokens_tool", ("done", "max_tokens", ""), 1, "I write", keeps=True),
    Row("F20", "max_tokens_tool:bare", ("done", "max_tokens", ""), 2, "Cut at the length"),
    Row("F20 once", "max_tokens_tool:bare:x1", DONE, 2, keeps=True),
    Row("F21 JSON", "bad_json_tool", ("done", "loop_limit", "wrong_calls"), 3, WRONG_CALLS),
    Row("F21 unknown", "unknown_tool", ("done", "loop_limit", "wrong_calls"), 3, WRONG_CALLS),
    Row("F21 schema", "wrong_input_tool", ("done", "loop_limit", "wrong_calls"), 3, WRONG_CALLS),
    Row("F21 schema twice", "wrong_input_tool:x2", DONE, 3, keeps=True),
    Row("F21 50 tools", "many_tools:50:x1", DONE, 2, keeps=True),
    Row("F21 same ids", "same_tool_ids", ODD, 1),
    Row("F22", "pause_turn:empty:x3", DONE, 4, keeps=True),
    Row("F22 for ever", "pause_turn:empty", ("done", "truncated", ""), 6, "unexpectedly"),
    Row("F22 text", "pause_turn", ("done", "truncated", ""), 1, "still at it", keeps=True),
    Row("F23", "refusal", ("done", "refusal", ""), 1, f"cyber. {LEFT_OUT}"),
    Row("F23 null", "refusal_null", ("done", "refusal", ""), 1, LEFT_OUT),
    Row("F23 after text", "refusal_partial", ("done", "refusal", ""), 1, LEFT_OUT, keeps=True),
    Row("F25 start twice", "duplicate_start", ODD, 4),
    Row("F25 start twice once", "duplicate_start:x1", DONE, 2, keeps=True),
    Row("F25 block stop twice", "duplicate_block_stop", ODD, 1),
    Row("F25 event", "unknown_event", DONE, 1, keeps=True),
    Row("F25 delta", "unknown_delta", DONE, 1, keeps=True),
    Row("F25 block", "unknown_block", DONE, 1, keeps=True),
    Row("F25 index", "index_skip", ODD, 4),
    Row("F25 no start", "no_start", ODD, 4),
    Row("F25 no delta", "no_delta", ODD, 1, keeps=True),
    Row("F25 bad SSE", "bad_sse", ODD, 1, keeps=True),
    Row("F25 stop reason", "unknown_stop", ("done", "truncated", ""), 1, keeps=True),
    Row("F25 empty", "empty", DONE, 1),
    Row("F25 NUL", "nul", DONE, 1, "A NUL \ufffd and", keeps=True),
    Row("F26 page", "html200", ODD, 1, "no answer"),
    Row("F27 rounds", "loop", ("done", "loop_limit", ""), 5, "limit of steps",
        settings={"MAX_ROUNDS": 5}),
    Row("F27 tools", "loop", ("done", "loop_limit", ""), 4, "limit of steps",
        settings={"MAX_TOOL_CALLS": 3}),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
async def test_a_fault_ends_as_the_matrix_says_and_the_talk_goes_on(
    app: App, settings: Any, row: Row
) -> None:
    for name, value in row.settings.items():
        setattr(settings, f"AGENTWEB_{name}", value)
    async with app.chat() as chat:
        turn = await chat.say(f"{row.words} emulator:fault={row.fault}")
        assert (turn.state, turn.finish_reason, turn.error_code) == row.end
        assert await db(ApiCall.objects.filter(purpose="reply").count) == row.requests
        assert bool(await db(said, turn)) is row.keeps
        assert row.says in chat.text(1)
        assert ("Try again" in chat.text(1)) is (turn.state == "failed")
        assert files(chat) == []
        await check_everything(chat)
        if row.name.startswith("F23"):
            assert await db(reductions, chat) == [("trim", "applied")]
            assert "emulator:fault" not in app.emulator.emulator.log[-1].body.decode()


async def talked(chat: Any) -> None:
    """A history with something in it to reduce."""
    for number in range(4):
        await chat.say(f"Answer in 300 words, number {number}")


async def test_f2_what_is_too_long_is_reduced_and_answered(app: App) -> None:
    async with app.chat() as chat:
        await talked(chat)
        before = len(app.statuses)
        turn = await chat.say("Hello emulator:fault=overflow:x1")
        assert (turn.state, turn.finish_reason) == ("done", "end_turn")
        assert app.statuses[before:][0] == 400
        assert app.statuses[before:][-1] == 200
        assert "applied" in {outcome for _, outcome in await db(reductions, chat)}
        sizes = [len(row.body) for row in app.emulator.emulator.log[before:]]
        assert sizes[-1] < sizes[0]
        await check_everything(chat)


async def test_f2_the_ladder_has_an_end_and_the_next_message_works(app: App) -> None:
    async with app.chat() as chat:
        await talked(chat)
        before = len(app.statuses)
        turn = await chat.say("Hello emulator:fault=overflow")
        assert (turn.state, turn.finish_reason, turn.error_code) == (
            "failed",
            "context",
            "overflow",
        )
        replies = [status for status in app.statuses[before:] if status == 400]
        assert 2 <= len(replies) <= 4
        await check_everything(chat)


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


async def test_f4_a_bad_key_is_one_alert_whatever_the_number_of_users(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        async with app.chat() as chat:
            await chat.say("Hello emulator:fault=authentication")
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
    settings.AGENTWEB_MAX_BACKOFF_SECONDS = 60
    async with app.chat() as chat:
        turn = await chat.send("Hello emulator:fault=rate_limited:30")
        await until(lambda: Turn.objects.filter(state="backoff").exists())
        began = time.monotonic()
        await chat.post("stop")
        turn = await chat.ended(turn)
        assert (turn.state, turn.finish_reason) == ("cancelled", "stopped")
        assert time.monotonic() - began < 15
        assert app.statuses == [429]
        await check_everything(chat)


async def test_f8_a_long_wait_frees_the_turn_at_once(app: App) -> None:
    async with app.chat() as chat:
        began = time.monotonic()
        turn = await chat.say("Hello emulator:fault=rate_limited:3600")
        assert turn.state == "failed"
        assert time.monotonic() - began < 15


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


async def test_f12_a_cut_answer_is_kept_and_its_cost_is_an_estimate(app: App) -> None:
    async with app.chat() as chat:
        turn = await chat.say("Answer in 200 words emulator:fault=error_after:30")
        kept = await db(said, turn)
        assert kept
        assert " ".join(kept.split()) in chat.text(1)
        result = await db(ApiResult.objects.get)
        assert (result.status, result.cost_basis) == ("truncated", "estimated")
        assert result.cost_micros > 0
        await chat.post("retry/1")
        again = await db(lambda: Turn.objects.latest("pk"))
        await chat.ended(again)
        await check_everything(chat)


async def test_f17_a_trickle_works_and_harms_nobody(app: App) -> None:
    async with app.chat() as slow, app.chat() as quick:
        turn = await slow.send("Hello emulator:fault=dribble:0.4")
        await until(lambda: Turn.objects.filter(state="running").exists())
        other = await quick.say("Hello")
        assert other.state == "done"
        assert (await slow.ended(turn)).state in ("done", "failed")
        await check_everything(slow)


async def test_f17_a_trickle_without_end_ends_at_the_deadline(app: App, settings: Any) -> None:
    async with app.chat() as chat:
        turn = await chat.say("Answer in 300 words emulator:fault=dribble:100")
        assert (turn.state, turn.error_code) == ("failed", "timeout")
        await check_everything(chat)


async def test_f18_a_connection_that_stays_open_does_not_hold_the_turn(app: App) -> None:
    async with app.chat() as chat:
        began = time.monotonic()
        assert (await chat.say("Hello emulator:fault=after_stop")).state == "done"
        assert time.monotonic() - began < 15


async def test_f21_of_many_calls_some_run_at_once_and_all_are_answered(app: App) -> None:
    async with app.chat() as chat:
        turn = await chat.say("Hello emulator:fault=many_tools:50:x1")
        states = await db(lambda: set(ToolCall.objects.values_list("state", flat=True)))
        assert (turn.state, states) == ("done", {"ok"})
        assert await db(ToolCall.objects.count) == 50


async def test_f26_a_redirect_never_takes_the_prompt_to_another_host(app: App) -> None:
    asked = []

    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.read(100))
        writer.close()

    server = await asyncio.start_server(other, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, app.chat() as chat:
        turn = await chat.say(f"Hello emulator:fault=redirect:http://127.0.0.1:{port}/v1/messages")
        assert (turn.state, turn.error_code) == ("failed", "protocol_error")
        assert asked == []
        await check_everything(chat)


@pytest.mark.parametrize("how", ["error", "empty", "blank", "long", "refusal", "toolcall", "cut"])
async def test_f28_a_summary_that_fails_leaves_the_turn_to_the_other_steps(
    app: App, settings: Any, how: str
) -> None:
    settings.AGENTWEB_COMPACTION_THRESHOLD_TOKENS = 3_500
    settings.AGENTWEB_INPUT_TOKEN_BUDGET = 3_000
    settings.AGENTWEB_PROTECTED_TAIL_MESSAGES = 2
    async with app.chat() as chat:
        for number in range(5):
            turn = await chat.say(f"Answer in 500 words, number {number} emulator:summary={how}")
            assert (turn.state, turn.error_text) == ("done", "")
        found = await db(reductions, chat)
        assert ("summary", "rejected") in found
        assert ("summary", "applied") not in found
        await check_everything(chat)


async def test_f27_a_loop_ends_at_the_budget(app: App) -> None:
    async with app.chat(limit=20_000) as chat:
        turn = await chat.say("Hello emulator:fault=loop", 40)
        assert (turn.state, turn.finish_reason, turn.error_code) == ("failed", "budget", "budget")
        assert 2 < len(app.statuses) < 40
        spent = await db(BudgetWindow.objects.get)
        assert spent.spent_micros + spent.overrun_micros == app.emulator.emulator.billed_micros
        await db(check_rows)


def closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize("where", ["port", "name", "tls"])
async def test_f29_an_api_that_cannot_be_reached_is_said_and_then_reached(
    app: App, where: str
) -> None:
    url = {
        "port": closed_port(),
        "name": "http://no-such-host.invalid",
        "tls": app.emulator.url.replace("http:", "https:"),
    }[where]
    async with app.chat() as chat:
        await app.point_at(url)
        turn = await chat.say("Hello")
        assert turn.state == "failed"
        assert turn.error_code in ("unreachable", "timeout")
        await app.point_at(app.emulator.url)
        await check_everything(chat)
