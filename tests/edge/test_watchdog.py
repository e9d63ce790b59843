"""What held a loop is named: in the loop's own thread, or in another that kept the lock."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from agentweb.edge import watchdog as module
from agentweb.edge.watchdog import Watchdog
from conversations.telemetry import metrics

#: Backtracks for longer than any block here, in one call of C code that keeps the lock.
EVIL = re.compile(r"(a+)+$")


def block_by_sleep() -> None:
    time.sleep(0.6)


def keep_the_lock() -> None:
    EVIL.match("a" * 24 + "!")
    EVIL.match("a" * 24 + "!")


async def watch(meanwhile: Callable[[], Any], milliseconds: int = 200) -> None:
    dog = Watchdog(asyncio.get_running_loop(), milliseconds)
    dog.start()
    await asyncio.sleep(0.1)
    meanwhile()
    await asyncio.sleep(0.5)
    dog.stop()
    await asyncio.to_thread(dog.join)


@pytest.fixture
def counted() -> Any:
    metrics.switch_on()
    yield
    metrics.switch_off()


@pytest.mark.usefixtures("counted")
@pytest.mark.asyncio
async def test_a_block_is_logged_with_its_stack_and_counted(caplog: Any) -> None:
    await watch(block_by_sleep)
    assert "the event loop has been busy for" in caplog.text
    assert caplog.text.count("time.sleep(0.6)") == 1
    text = metrics.render_exposition()[0].decode()
    assert 'agentweb_event_loop_blocks_total{by="the loop"}' in text


@pytest.mark.asyncio
async def test_a_thread_that_keeps_the_lock_is_named(caplog: Any) -> None:
    def other() -> None:
        thread = threading.Thread(target=keep_the_lock, name="culprit")
        thread.start()

    await watch(other)
    assert "of thread culprit, which held the lock" in caplog.text
    assert "EVIL.match" in caplog.text


@pytest.mark.asyncio
async def test_blocks_in_a_row_are_counted_and_told_once(caplog: Any) -> None:
    def many() -> None:
        for _ in range(2):
            block_by_sleep()

    await watch(many)
    await watch(lambda: None)
    assert caplog.text.count("the event loop has been busy") == 1


@pytest.mark.asyncio
async def test_it_can_be_switched_off(caplog: Any) -> None:
    await watch(block_by_sleep, milliseconds=0)
    assert "busy" not in caplog.text


@pytest.mark.asyncio
async def test_a_stack_is_bounded(caplog: Any) -> None:
    def deep(left: int) -> None:
        if left:
            deep(left - 1)
        else:
            block_by_sleep()

    await watch(lambda: deep(100))
    frames = [line for line in caplog.text.splitlines() if line.startswith("  File ")]
    assert len(frames) <= module.MOST_FRAMES
    assert "time.sleep(0.6)" in caplog.text
