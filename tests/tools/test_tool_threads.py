"""A tool has a thread of its own: whatever it does there, others go on, and it is ended."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import pytest

from tools.framework import tool_threads
from tools.framework.execute import execute_tool
from tools.framework.registry import TOOLS
from tools.framework.tool import Tool, ToolContext, tool
from tools.framework.tool_threads import run_in_tool_thread


def toy(work: Callable[[], Any], timeout: float = 30) -> Tool:
    @tool(icon="tool", effect="read", timeout=timeout)
    async def spinning(context: ToolContext) -> str:
        """Do what the test says, without an await."""
        return str(work())

    return spinning


def spin() -> None:
    while True:
        pass


@pytest.mark.asyncio
async def test_a_tool_that_spins_in_pure_python_holds_nobody_and_is_ended(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_threads, "MOST_PROCESSOR", 0.5)
    spinning = asyncio.create_task(execute_tool(toy(spin), {}, context))
    for _ in range(20):
        assert not (await execute_tool(TOOLS["current_time"], {}, context)).is_error
    assert not spinning.done()
    result = await spinning
    assert result.details["code"] == "limits"
    assert "computed for more than" in str(result.content)


@pytest.mark.asyncio
async def test_a_tool_that_spins_is_interrupted_at_its_deadline(context: ToolContext) -> None:
    seen: list[str] = []

    def work() -> None:
        try:
            spin()
        except tool_threads.Interrupted:
            seen.append("interrupted")
            raise

    result = await execute_tool(toy(work, timeout=0.1), {}, context)
    assert result.details["code"] == "timeout"
    assert seen == ["interrupted"]


@pytest.mark.asyncio
async def test_a_tool_that_waits_again_when_it_is_cancelled_leaves_no_thread(
    context: ToolContext, caplog: pytest.LogCaptureFixture
) -> None:
    threads: list[threading.Thread] = []

    @tool(icon="tool", effect="read", timeout=0.1)
    async def waiting(context: ToolContext) -> str:
        """Wait, whatever it is told."""
        threads.append(threading.current_thread())
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.to_thread(threads.append, threading.current_thread())
                await asyncio.sleep(3_600)

    result = await execute_tool(waiting, {}, context)
    assert result.details["code"] == "timeout"
    assert "is left behind" not in caplog.text
    threads[0].join(60)
    assert not threads[0].is_alive()
    gc.collect()
    assert "destroyed" not in caplog.text


@pytest.mark.asyncio
async def test_an_error_of_a_call_that_was_told_to_end_is_logged(
    context: ToolContext, caplog: pytest.LogCaptureFixture
) -> None:
    @tool(icon="tool", effect="read", timeout=0.1)
    async def failing(context: ToolContext) -> str:
        """Fail when it is cancelled."""
        try:
            await asyncio.sleep(3_600)
        except asyncio.CancelledError:
            raise LookupError("late") from None
        return ""

    assert (await execute_tool(failing, {}, context)).details["code"] == "timeout"
    gc.collect()
    assert "a call that was told to end failed" in caplog.text
    assert "never retrieved" not in caplog.text


def test_a_thread_that_nobody_waits_for_ends_with_its_call() -> None:
    threads: list[threading.Thread] = []
    go_on = threading.Event()

    async def work() -> None:
        threads.append(threading.current_thread())
        go_on.wait()

    async def leave() -> None:
        call = asyncio.create_task(run_in_tool_thread(work))
        while not threads:
            await asyncio.sleep(0.01)
        for _ in range(2):
            call.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    asyncio.run(leave())
    go_on.set()
    threads[0].join(60)
    assert not threads[0].is_alive()


@pytest.mark.asyncio
async def test_a_tool_that_resists_is_left_behind(
    context: ToolContext, caplog: pytest.LogCaptureFixture
) -> None:
    over = threading.Event()
    caught: list[BaseException] = []

    def work() -> None:
        while not over.is_set():
            try:
                spin()
            except tool_threads.Interrupted as error:
                caught.append(error)

    result = await execute_tool(toy(work, timeout=0.1), {}, context)
    assert result.details["code"] == "timeout"
    # On a busy machine the thread comes to see it only later.
    for _ in range(6_000):
        if caught:
            break
        await asyncio.sleep(0.01)
    over.set()
    assert caught
    assert "is left behind" in caplog.text


@pytest.mark.asyncio
async def test_a_thread_is_kept_for_the_next_call_and_carries_the_context(
    context: ToolContext,
) -> None:
    variable: ContextVar[str] = ContextVar("variable", default="none")
    variable.set("carried")

    async def work() -> tuple[str, int]:
        return variable.get(), threading.get_ident()

    first, second = [await run_in_tool_thread(work) for _ in range(2)]
    assert first == second
    assert first[0] == "carried"
    assert first[1] != threading.get_ident()
    several = await asyncio.gather(*(run_in_tool_thread(work) for _ in range(20)))
    assert all(name == "carried" for name, _ in several)
    assert len(tool_threads._idle) <= tool_threads.MOST_IDLE


@pytest.mark.asyncio
async def test_an_error_of_a_call_is_its_callers() -> None:
    async def work() -> None:
        raise LookupError("x")

    with pytest.raises(LookupError):
        await run_in_tool_thread(work)
