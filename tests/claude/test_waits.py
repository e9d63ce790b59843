"""One timer ends whichever wait of a task is too long, and no other."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import Any

import pytest

from conversations.claude.waits import Waits

pytestmark = pytest.mark.asyncio


async def test_a_wait_ends_at_its_deadline() -> None:
    now = asyncio.get_running_loop().time
    began = now()
    with closing(Waits()) as waits:
        with pytest.raises(TimeoutError), waits.until(began + 0.05):
            await asyncio.sleep(30)
        assert 0.04 < now() - began < 10
        # The task goes on, and the next wait has a deadline again.
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()
        with pytest.raises(TimeoutError), waits.until(now() + 0.05):
            await asyncio.sleep(30)


async def test_many_waits_have_one_timer_and_only_what_is_late_ends(monkeypatch: Any) -> None:
    loop = asyncio.get_running_loop()
    timers: list[float] = []
    call_at = loop.call_at

    def keep(when: float, call: Any, *args: Any, **more: Any) -> Any:
        timers.extend([when] * (getattr(call, "__name__", "") == "_look"))
        return call_at(when, call, *args, **more)

    monkeypatch.setattr(loop, "call_at", keep)
    due = loop.time() + 0.1
    with closing(Waits()) as waits:
        for _ in range(20):
            with waits.until(due):
                await asyncio.sleep(0)
        assert timers == [due]
        # The timer comes while a wait with a later deadline is on, and nothing ends.
        with waits.until(loop.time() + 30):
            await asyncio.sleep(0.2)
        assert len(timers) == 2
        # It comes while nothing waits.
    with closing(Waits()) as waits:
        with waits.until(loop.time() + 0.01):
            pass
        await asyncio.sleep(0.05)
        with waits.until(loop.time() + 30):
            await asyncio.sleep(0)


async def test_a_deadline_before_that_of_an_earlier_wait_is_kept() -> None:
    now = asyncio.get_running_loop().time
    began = now()
    with closing(Waits()) as waits:
        with waits.until(began + 30):
            await asyncio.sleep(0)
        with pytest.raises(TimeoutError), waits.until(began + 0.05):
            await asyncio.sleep(3)
    assert now() - began < 2


async def test_a_cancellation_by_others_stays_one() -> None:
    async def wait(seconds: float) -> None:
        with closing(Waits()) as waits, waits.until(asyncio.get_running_loop().time() + seconds):
            await asyncio.sleep(30)

    for seconds in (30.0, 0.0):
        task = asyncio.create_task(wait(seconds))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_nothing_ends_a_task_after_its_waits() -> None:
    with closing(Waits()) as waits, waits.until(asyncio.get_running_loop().time() + 0.02):
        await asyncio.sleep(0)
    await asyncio.sleep(0.1)
