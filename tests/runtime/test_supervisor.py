"""Turns of this process: run to their end, stopped, interrupted, drained, and never run twice."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection

from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer
from conversations.db import THREADS, run_db
from conversations.live import draft_batches, render
from conversations.live.hub import hub
from conversations.log import append, leases
from conversations.models import (
    ApiCall,
    ApiResult,
    BudgetWindow,
    Draft,
    Message,
    ToolCall,
    Turn,
    User,
)
from conversations.runtime import turn as running_module
from conversations.turns import calls, takeovers, tool_calls, turns
from tests.support import people_and_turns
from tests.support.open_pages import opened
from tests.support.running_turns import (
    accounted,
    answer_text,
    ended,
    is_valid,
    queue,
    run,
    supervising,
    until,
)
from tools.framework.toolset import Toolset

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorServer]:
    with server.start(pace=0, record=True) as running:
        yield running


@pytest.fixture(autouse=True)
def _served(emulator: EmulatorServer, settings: Any, monkeypatch: Any) -> Iterator[None]:
    """Point the app at the emulator; afterwards every request it saw must be accounted for."""
    emulator.emulator.reset()
    settings.ANTHROPIC_BASE_URL = emulator.url
    settings.AGENTWEB_MAX_BACKOFF_SECONDS = 1
    monkeypatch.setattr(running_module, "RENEWALS", 100)
    monkeypatch.setattr(draft_batches, "DRAFT_SECONDS", 0.05)
    yield
    assert hub._topics == {}


async def test_a_turn_runs_to_its_end(emulator: EmulatorServer) -> None:
    async with supervising() as supervisor:
        turn = await run(supervisor, "Hello there")
    assert (turn.state, turn.finish_reason, turn.error_code) == ("done", "end_turn", "")
    assert await run_db(answer_text, turn)
    await run_db(is_valid, turn.conversation)
    await accounted(emulator)


async def test_a_lease_is_kept_while_all_threads_of_the_pages_are_busy(
    emulator: EmulatorServer, settings: Any
) -> None:
    settings.AGENTWEB_LEASE_SECONDS = 3
    turn = await queue("Say nothing for ever emulator:fault=hang")
    gate = threading.Event()
    async with supervising() as supervisor:
        supervisor.wake(turn.pk)
        await until(lambda: ApiCall.objects.filter(turn=turn).exists())
        before = await run_db(lambda: Turn.objects.get(pk=turn.pk).lease_until)
        busy = [asyncio.ensure_future(run_db(gate.wait, 90)) for _ in range(THREADS)]
        try:
            renewed = lambda: Turn.objects.get(pk=turn.pk).lease_until > before  # noqa: E731
            async with asyncio.timeout(60):
                while not await asyncio.to_thread(_by_itself, renewed):
                    await asyncio.sleep(0.01)
        finally:
            gate.set()
            await asyncio.gather(*busy)
        supervisor.stop(turn.pk)
        await ended(turn)
    await accounted(emulator)


def _by_itself(look: Callable[[], bool]) -> bool:
    """Look at the database in a thread that is no longer needed then."""
    try:
        return look()
    finally:
        connection.close()


async def test_a_turn_without_a_sign_of_life_stops_before_another_may_take_it(
    emulator: EmulatorServer, monkeypatch: Any
) -> None:
    renew = leases.renew_lease

    def gone(**given: Any) -> bool:
        # A turn's start renews its lease too, and late where the machine is busy.
        if threading.current_thread().name.startswith("signs"):
            raise OperationalError("gone")
        return renew(**given)

    turn = await queue("Say nothing for ever emulator:fault=hang")
    async with supervising() as supervisor:
        monkeypatch.setattr(running_module, "LAST_SIGN", 0.01)
        monkeypatch.setattr(leases, "renew_lease", gone)
        supervisor.wake(turn.pk)
        turn = await ended(turn)
    assert (turn.state, turn.finish_reason) == ("interrupted", "lease")
    await accounted(emulator)


async def test_tools_do_their_work_and_their_results_go_back(emulator: EmulatorServer) -> None:
    async with supervising() as supervisor:
        turn = await run(supervisor, "Write the file plan.md with content: buy milk")
        conversation = turn.conversation
        listed = await run(supervisor, "List my files", conversation)
        read = await run(supervisor, "Read the file plan.md", conversation)
        failed = await run(supervisor, "Call an unknown tool", conversation)
        many = await run(supervisor, "Use 9 tools", conversation)
    states = [each.state for each in (turn, listed, read, failed, many)]
    assert states == ["done"] * 5

    def outputs() -> dict[str, Any]:
        rows = ToolCall.objects.select_related("output").order_by("pk")
        return {row.name: (row.state, row.output.text if row.output else "") for row in rows}

    found = await run_db(outputs)
    assert "plan.md" in found["list_files"][1]
    assert "buy milk" in found["read_file"][1]
    assert found["launch_rocket"][0] == "error"
    assert await run_db(lambda: ToolCall.objects.filter(turn=many, state="ok").count()) == 9
    await run_db(is_valid, conversation)
    await accounted(emulator)


async def test_a_budget_is_charged_to_the_micro_dollar(emulator: EmulatorServer) -> None:
    turn = await queue("List my files")
    await run_db(lambda: people_and_turns.limited(User.objects.get(), 50_000_000))
    async with supervising():
        await ended(turn)
    window = await run_db(BudgetWindow.objects.get)
    assert window.spent == emulator.emulator.billed_micros > 0
    await accounted(emulator)


async def test_a_budget_that_is_used_up_ends_the_turn_in_words(emulator: EmulatorServer) -> None:
    turn = await queue("Hello")
    await run_db(lambda: people_and_turns.limited(User.objects.get(), 5))
    async with supervising():
        done = await ended(turn)
    assert (done.state, done.finish_reason) == ("failed", "budget")
    assert "budget" in done.error_text
    assert emulator.emulator.log == []


async def test_a_stop_before_the_first_event_leaves_only_the_prompt(
    emulator: EmulatorServer,
) -> None:
    async with supervising() as supervisor:
        turn = await queue("Hello emulator:fault=hang_after:0")
        supervisor.wake(turn.pk)
        await until(ApiCall.objects.exists)
        await run_db(turns.request_stop, turn=turn)
        supervisor.stop(turn.pk)
        done = await ended(turn)
    assert (done.state, done.finish_reason) == ("cancelled", "stopped")
    assert await run_db(Message.objects.count) == 1
    await run_db(is_valid, done.conversation)
    await accounted(emulator)


async def test_a_stop_in_mid_answer_keeps_what_was_said(emulator: EmulatorServer) -> None:
    async with supervising() as supervisor:
        turn = await queue("Answer in 900 words emulator:pace=0.01")
        supervisor.wake(turn.pk)
        await until(lambda: Draft.objects.exclude(text="").exists())
        await run_db(turns.request_stop, turn=turn)
        supervisor.stop(turn.pk)
        done = await ended(turn)
    assert done.state == "cancelled"
    text = await run_db(answer_text, done)
    assert 0 < len(text.split()) < 900
    result = await run_db(ApiResult.objects.get)
    assert (result.status, result.cost_basis) == ("stopped", "estimated")
    await run_db(is_valid, done.conversation)
    await accounted(emulator)


async def test_a_stop_of_another_process_is_read_with_the_lease(emulator: EmulatorServer) -> None:
    async with supervising() as supervisor:
        turn = await queue("Answer in 5000 words emulator:pace=0.02")
        supervisor.wake(turn.pk)
        await until(ApiCall.objects.exists)
        await run_db(turns.request_stop, turn=turn)
        done = await ended(turn)
    assert done.state == "cancelled"


async def test_a_turn_that_lost_its_lease_stops_and_writes_no_more(
    emulator: EmulatorServer,
) -> None:
    async with supervising() as supervisor:
        turn = await queue("Answer in 5000 words emulator:pace=0.02")
        supervisor.wake(turn.pk)
        await until(ApiCall.objects.exists)
        await run_db(takeovers.take_over_turn, turn_id=turn.pk, everything=True)
        before = await run_db(people_and_turns.everything)
        if tasks := list(supervisor._tasks.values()):
            await asyncio.wait(tasks, timeout=60)
        assert supervisor._tasks == {}
        assert await run_db(people_and_turns.everything) == before


async def test_a_busy_model_is_waited_for_where_people_see_it(emulator: EmulatorServer) -> None:
    async with supervising() as supervisor:
        turn = await queue("Hello emulator:fault=overloaded:x2")
        supervisor.wake(turn.pk)
        await until(lambda: Turn.objects.filter(state="backoff", retry_at__isnull=False).exists())
        done = await ended(turn)
    assert (done.state, done.attempt, done.retry_at) == ("done", 3, None)
    assert [row.status for row in emulator.emulator.log] == [529, 529, 200]
    await accounted(emulator)


async def test_a_stop_works_during_the_wait(emulator: EmulatorServer, settings: Any) -> None:
    # Nobody here waits as long as it would.
    settings.AGENTWEB_MAX_BACKOFF_SECONDS = 900
    async with supervising() as supervisor:
        turn = await queue("Hello emulator:fault=rate_limited:600")
        supervisor.wake(turn.pk)
        await until(lambda: Turn.objects.filter(state="backoff").exists())
        await run_db(turns.request_stop, turn=turn)
        supervisor.stop(turn.pk)
        done = await ended(turn)
    assert done.state == "cancelled"
    assert len(emulator.emulator.log) == 1


@pytest.mark.parametrize(
    ("fault", "code", "requests"),
    [
        ("bad_request", "invalid_request", 1),
        ("authentication", "authentication", 1),
        ("billing", "billing", 1),
        ("not_found", "not_found", 1),
        ("rate_limited:3600", "rate_limited", 1),
        ("spend_limit", "billing", 1),
        ("overloaded", "overloaded", 2),
        ("api_error", "upstream", 2),
        ("error_after:3", "overloaded", 1),
        ("cut_after:3", "cut", 1),
        ("end_before_stop", "cut", 1),
        ("duplicate_start", "protocol_error", 2),
    ],
)
async def test_a_failure_ends_the_turn_with_words_and_the_talk_goes_on(
    emulator: EmulatorServer, settings: Any, fault: str, code: str, requests: int
) -> None:
    settings.AGENTWEB_MAX_ATTEMPTS = 2
    async with supervising() as supervisor:
        done = await run(supervisor, f"Hello emulator:fault={fault}")
        assert (done.state, done.error_code) == ("failed", code)
        assert len(done.error_text) > 10
        assert len(emulator.emulator.log) == requests
        await run_db(is_valid, done.conversation)
    # Another client: after a refusal for money this one asks no more for a while.
    async with supervising() as supervisor:
        again = await run(supervisor, "Are you there?", done.conversation)
    assert again.state == "done"
    await accounted(emulator)


def broken(*_: Any, **__: Any) -> None:
    raise RuntimeError("on purpose")


@pytest.mark.parametrize(
    ("where", "name", "prompt"),
    [
        (running_module, "build_job", "Hello"),
        (calls, "open_call", "Hello"),
        (turns, "finish_with_call", "Answer in 200 words emulator:pace=0.003"),
        (calls, "close_call", "List my files"),
        (tool_calls, "finish_tool", "List my files"),
        (append, "store_results", "List my files"),
        (Toolset, "run", "List my files"),
        (render, "render_events", "List my files"),
    ],
)
async def test_an_error_of_our_own_leaves_a_talk_that_goes_on(
    emulator: EmulatorServer, monkeypatch: Any, where: Any, name: str, prompt: str
) -> None:
    turn = await queue(prompt)
    await run_db(lambda: people_and_turns.limited(User.objects.get(), 50_000_000))
    async with supervising() as supervisor:
        page = opened(turn.conversation_id, turn.conversation.version)
        with page, monkeypatch.context() as patch:
            patch.setattr(where, name, broken)
            supervisor.wake(turn.pk)
            row = await ended(turn)
        survives = name in ("run", "render_events")
        assert (row.state, row.error_code) == (("done", "") if survives else ("failed", "internal"))
        kept = await run_db(answer_text, row)
        assert name != "finish_with_call" or kept
        await run_db(is_valid, row.conversation)
        assert (await run(supervisor, "Are you there?", row.conversation)).state == "done"
    await accounted(emulator)


async def test_a_model_that_is_switched_off_is_said(emulator: EmulatorServer) -> None:
    turn = await queue("Hello")
    await run_db(type(turn.conversation).objects.update, model="claude-unknown-1")
    async with supervising():
        done = await ended(turn)
    assert (done.state, done.error_code) == ("failed", "model_unknown")
    assert "claude-unknown-1" in done.error_text


async def test_a_turn_that_takes_too_long_is_ended(emulator: EmulatorServer, settings: Any) -> None:
    settings.AGENTWEB_MAX_TURN_SECONDS = 3
    async with supervising() as supervisor:
        done = await run(supervisor, "Answer in 5000 words emulator:pace=0.02")
    assert (done.state, done.finish_reason, done.error_code) == (
        "failed",
        "loop_limit",
        "turn_time",
    )
    assert await run_db(answer_text, done)
    await accounted(emulator)


async def test_a_user_shut_out_in_mid_turn_makes_no_more_requests(emulator: EmulatorServer) -> None:
    turn = await queue("List my files")
    await run_db(User.objects.update, is_active=False)
    async with supervising():
        done = await ended(turn)
    assert (done.state, done.error_code) == ("failed", "inactive")
    assert emulator.emulator.log == []


# Several processes, and their ends.
