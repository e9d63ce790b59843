"""What held a loop is named: in the loop's own thread, or in another that kept the lock."""

from __future__ import annotations

import asyncio
import logging
import re
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from agentweb.edge import watchdog as module
from agentweb.edge.watchdog import Watchdog
from agentweb.observability.logs import LineFormatter
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
async def test_a_block_is_one_line_that_names_its_function_and_is_counted(caplog: Any) -> None:
    await watch(block_by_sleep)
    (record,) = caplog.records
    assert "\n" not in record.getMessage()
    assert record.getMessage() == "the event loop has been busy"
    assert 0.2 <= record.fields["seconds"] < 5
    assert re.fullmatch(r"tests/edge/test_watchdog.py:\d+:block_by_sleep", record.fields["at"])
    shown = LineFormatter().format(record)
    assert re.search(
        r"busy seconds=\d\.\d at=tests/edge/test_watchdog\.py:\d+:block_by_sleep$", shown
    )
    text = metrics.render_exposition()[0].decode()
    assert 'agentweb_event_loop_blocks_total{by="the loop"}' in text


@pytest.mark.asyncio
async def test_a_thread_that_keeps_the_lock_is_named(caplog: Any) -> None:
    def other() -> None:
        thread = threading.Thread(target=keep_the_lock, name="culprit")
        thread.start()

    await watch(other)
    (record,) = caplog.records
    assert record.fields["thread"] == "culprit"
    assert record.fields["at"].endswith(":keep_the_lock")


@pytest.mark.asyncio
async def test_a_block_in_a_library_names_who_called_it(caplog: Any) -> None:
    def harmless() -> None:
        subprocess.run(["sleep", "0.6"], check=True)

    await watch(harmless)
    (record,) = caplog.records
    assert "/subprocess.py:" in record.fields["at"]
    assert re.fullmatch(r"tests/edge/test_watchdog.py:\d+:harmless", record.fields["called_by"])


@pytest.mark.asyncio
async def test_blocks_in_a_row_are_counted_and_told_once(caplog: Any) -> None:
    def many() -> None:
        for _ in range(2):
            block_by_sleep()

    await watch(many)
    await watch(lambda: None)
    assert len(caplog.records) == 1


@pytest.mark.asyncio
async def test_it_can_be_switched_off(caplog: Any) -> None:
    await watch(block_by_sleep, milliseconds=0)
    assert "busy" not in caplog.text


@pytest.mark.asyncio
async def test_the_stack_is_told_at_debug_alone_and_bounded(caplog: Any) -> None:
    caplog.set_level(logging.DEBUG, "agentweb.edge")

    def deep(left: int) -> None:
        if left:
            deep(left - 1)
        else:
            block_by_sleep()

    await watch(lambda: deep(100))
    stack = [record.getMessage() for record in caplog.records if record.levelname == "DEBUG"]
    frames = [line for line in "".join(stack).splitlines() if line.startswith("  File ")]
    assert len(stack) == 1
    assert 0 < len(frames) <= module.MOST_FRAMES
    assert "time.sleep(0.6)" in stack[0]
