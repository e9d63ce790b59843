"""RELIABILITY.md, group A: every fault of the API, from the socket of a page to the emulator.

Most rows are in the table of `matrix`; `test_waits` has those about waiting and about many users,
`test_every_offset` cuts F14 at every byte. After each of them all invariants must hold. Rows differ
in what the API sends, not in what is stored: PostgreSQL runs every fourth of them.
"""

from __future__ import annotations

import asyncio
import re
import socket
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from conversations.db import run_db
from conversations.models import ApiCall, ApiResult, BudgetWindow, ToolCall, Turn
from tests.faults.matrix import NUMBERS, ROWS, Row
from tests.faults.oracle import check_everything, check_rows
from tests.faults.running_app import App, files, reductions
from tests.support.one_database import with_slice
from tests.support.paying_summaries import SUMMARY_PAYS
from tests.support.running_turns import answer_text

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


async def test_every_row_of_the_group_has_a_test() -> None:
    named = {row.name.split()[0] for row in ROWS}
    for path in Path(__file__).parent.glob("test_*.py"):
        for name in re.findall(r"async def test_((?:f\d+_)+)", path.read_text(encoding="utf-8")):
            named.update(name.upper().strip("_").split("_"))
    assert named == set(NUMBERS)


@pytest.mark.parametrize("row", with_slice(ROWS), ids=lambda row: row.name)
async def test_a_fault_ends_as_the_matrix_says_and_the_talk_goes_on(
    app: App, settings: Any, row: Row
) -> None:
    for name, value in row.settings.items():
        setattr(settings, f"AGENTWEB_{name}", value)
    async with app.chat() as chat:
        async with app.hurrying(row.deadlines) if row.deadlines else nullcontext():
            turn = await chat.say(f"{row.words} emulator:fault={row.fault}")
        assert (turn.state, turn.finish_reason, turn.error_code) == row.end
        assert await run_db(ApiCall.objects.filter(purpose="reply").count) == row.requests
        assert bool(await run_db(answer_text, turn)) is row.keeps
        assert row.says in chat.text(1)
        assert ("Try again" in chat.text(1)) is (turn.state == "failed" or row.is_empty)
        assert await run_db(files, chat) == []
        await check_everything(chat)
        if row.name.startswith("F23"):
            assert await run_db(reductions, chat) == [("trim", "applied")]
            assert "emulator:fault" not in app.emulator.emulator.log[-1].body.decode()


async def talked(chat: Any) -> None:
    """Make a history with something to reduce."""
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
        assert "applied" in {outcome for _, outcome in await run_db(reductions, chat)}
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


async def test_f12_a_cut_answer_is_kept_and_its_cost_is_an_estimate(app: App) -> None:
    async with app.chat() as chat:
        turn = await chat.say("Answer in 200 words emulator:fault=error_after:30")
        kept = await run_db(answer_text, turn)
        assert kept
        assert " ".join(kept.split()) in chat.text(1)
        result = await run_db(ApiResult.objects.get)
        assert (result.status, result.cost_basis) == ("truncated", "estimated")
        assert result.cost_micros > 0
        await chat.post("retry/1")
        again = await run_db(lambda: Turn.objects.latest("pk"))
        await chat.ended(again)
        await check_everything(chat)


async def test_f21_of_many_calls_some_run_at_once_and_all_are_answered(app: App) -> None:
    async with app.chat() as chat:
        turn = await chat.say("Hello emulator:fault=many_tools:50:x1")
        states = await run_db(lambda: set(ToolCall.objects.values_list("state", flat=True)))
        assert (turn.state, states) == ("done", {"ok"})
        assert await run_db(ToolCall.objects.count) == 50


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


@pytest.mark.parametrize(
    "how", with_slice(["error", "empty", "blank", "long", "refusal", "toolcall", "cut"])
)
async def test_f28_a_summary_that_fails_leaves_the_turn_to_the_other_steps(
    app: App, settings: Any, how: str
) -> None:
    settings.AGENTWEB_COMPACTION_THRESHOLD_TOKENS = 3_500
    settings.AGENTWEB_INPUT_TOKEN_BUDGET = 3_000
    settings.AGENTWEB_PROTECTED_TAIL_MESSAGES = 2
    for name, value in SUMMARY_PAYS.items():
        setattr(settings, name, value)
    async with app.chat() as chat:
        for number in range(9):
            turn = await chat.say(f"Answer in 500 words, number {number} emulator:summary={how}")
            assert (turn.state, turn.error_text) == ("done", "")
        found = await run_db(reductions, chat)
        assert ("summary", "rejected") in found
        assert ("summary", "applied") not in found
        await check_everything(chat)


async def test_f27_a_loop_ends_at_the_budget(app: App) -> None:
    async with app.chat(limit=60_000) as chat:
        turn = await chat.say("Hello emulator:fault=loop")
        assert (turn.state, turn.finish_reason, turn.error_code) == ("failed", "budget", "budget")
        assert 2 < len(app.statuses) < 40
        spent = await run_db(BudgetWindow.objects.get)
        assert spent.spent + spent.overrun == app.emulator.emulator.billed_micros
        await run_db(check_rows)


async def test_f27_a_loop_ends_when_the_time_of_a_turn_is_over(app: App, settings: Any) -> None:
    settings.AGENTWEB_MAX_TURN_SECONDS = 1
    settings.AGENTWEB_MAX_ROUNDS = settings.AGENTWEB_MAX_TOOL_CALLS = 10_000
    async with app.chat() as chat:
        turn = await chat.say("Hello emulator:fault=loop")
        assert (turn.state, turn.finish_reason, turn.error_code) == (
            "failed",
            "loop_limit",
            "turn_time",
        )
        assert "time limit" in chat.text(1)
        settings.AGENTWEB_MAX_TURN_SECONDS = 60
        await check_everything(chat)


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
        async with app.hurrying():
            await app.point_at(url)
            turn = await chat.say("Hello")
        assert turn.state == "failed"
        assert turn.error_code in ("unreachable", "timeout")
        assert await run_db(ApiCall.objects.count) == 4
        await check_everything(chat)


async def test_thinking_that_another_account_signed_is_left_out_and_the_talk_goes_on(
    app: App,
) -> None:
    async with app.chat() as chat:
        assert (await chat.say("Hello")).state == "done"
        await app.point_at(app.emulator.url, "sk-test@elsewhere")
        turn = await chat.say("Are you still there?")
        assert (turn.state, turn.finish_reason) == ("done", "end_turn")
        assert app.statuses == [200, 400, 200]
        assert ("rebind", "applied") in await run_db(reductions, chat)
        refused = await run_db(ApiResult.objects.get, http_status=400)
        assert (refused.error_type, refused.cost_micros) == ("signature", 0)
        await check_everything(chat)
