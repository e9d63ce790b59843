"""A tool has a thread of its own: whatever it does there, others go on, and it is ended."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest

from tools.framework import tool_threads
from tools.framework.execute import execute_tool
from tools.framework.registry import TOOLS
from tools.framework.tool import Tool, ToolContext, tool
from tools.framework.tool_threads import run_in_tool_thread

pytestmark = pytest.mark.asyncio


def toy(work: Callable[[], Any], timeout: float = 30) -> Tool:
    @tool(icon="tool", effect="read", timeout=timeout)
    async def spinning(context: ToolContext) -> str:
        """Do what the test says, without an await."""
        return str(work())

    return spinning


def spin() -> None:
    while True:
        pass


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
    over.set()
    assert result.details["code"] == "timeout"
    assert caught
    assert "is left behind" in caplog.text


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


async def test_an_error_of_a_call_is_its_callers() -> None:
    async def work() -> None:
        raise LookupError("x")

    with pytest.raises(LookupError):
        await run_in_tool_thread(work)
