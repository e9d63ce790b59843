"""Work in a process of its own: limits hold, nothing remains, nothing is reached."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import os
import resource
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tools.framework.errors import (
    FileRefusedError,
    InputError,
    IsolationError,
    ToolError,
    WorkspaceBusyError,
)
from tools.framework.execute import execute_tool
from tools.framework.person import current_person
from tools.framework.tool import ToolContext, tool
from tools.isolation import isolated_calls
from tools.isolation.call_server import receive_exactly
from tools.isolation.fair_queue import FairQueue
from tools.isolation.isolated_calls import call_isolated, run_isolated
from tools.isolation.landlock import forbid_access
from tools.isolation.process_limits import OF_DOCUMENTS, OF_TEXT, ProcessLimits

#: Never ends, and holds the interpreter lock: one call of C code.
SPINS = (deque, itertools.repeat(1), 0)
HAS_LANDLOCK = sys.platform.startswith("linux") and call_isolated(forbid_access, []) > 0


@contextmanager
def limited(monkeypatch: pytest.MonkeyPatch, **fields: Any) -> Iterator[ProcessLimits]:
    """Limits of a test's own, with a queue of their own."""
    limits = replace(OF_TEXT, **fields)
    monkeypatch.setitem(isolated_calls._queues, limits, FairQueue(2))
    yield limits


@pytest.mark.parametrize("value", [None, [1, {"a": "\ud800"}], "x" * 3_000_000, "\ud800 é", b"\0x"])
def test_what_a_function_returns_arrives(value: object) -> None:
    assert call_isolated(max, [value]) == value


def test_a_refusal_arrives_with_its_class_and_words() -> None:
    from tools.documents.document_text import read_source

    with pytest.raises(FileRefusedError, match="binary"):
        call_isolated(read_source, b"\0\1", "x")


def test_another_error_is_named_and_nothing_of_it_is_said() -> None:
    with pytest.raises(IsolationError, match=r"failed \(JSONDecodeError\)"):
        call_isolated(json.loads, "{secret")
    with pytest.raises(IsolationError, match="limits"):
        call_isolated(os._exit, 3)


def test_memory_is_limited() -> None:
    with pytest.raises(IsolationError, match="limits"):
        call_isolated(bytes, 2_000_000_000)
    assert len(call_isolated(bytes, 10_000_000)) == 10_000_000


def test_processor_time_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        limited(monkeypatch, processor=1) as limits,
        pytest.raises(IsolationError, match="limits"),
    ):
        call_isolated(*SPINS, limits=limits)


def test_wall_time_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    with limited(monkeypatch, wall=0.2) as limits, pytest.raises(IsolationError, match="limits"):
        call_isolated(time.sleep, 600, limits=limits)


def test_a_result_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated_calls, "MOST_BYTES", 1_000)
    with pytest.raises(IsolationError, match="more than 1,000"):
        call_isolated(bytes, 1_001)


def test_a_process_has_none_of_our_environment_and_starts_with_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    assert call_isolated(os.getenv, "ANTHROPIC_API_KEY") is None
    first, second = (call_isolated(os.getpid) for _ in range(2))
    assert len({first, second, os.getpid()}) == 3


def test_a_process_writes_no_file(tmp_path: Path) -> None:
    with pytest.raises(IsolationError):
        call_isolated(Path.write_text, tmp_path / "made", "x" * 100)
    assert not (tmp_path / "made").exists() or (tmp_path / "made").stat().st_size == 0
    assert call_isolated(resource.getrlimit, resource.RLIMIT_FSIZE) == [0, 0]


@pytest.mark.skipif(not HAS_LANDLOCK, reason="this kernel has no Landlock")
def test_with_landlock_a_process_reads_no_file_and_connects_to_nobody(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x", encoding="utf-8")
    with pytest.raises(IsolationError, match="PermissionError"):
        call_isolated(Path.read_text, tmp_path / "secret", "utf-8")
    with pytest.raises(IsolationError, match="PermissionError"):
        call_isolated(os.listdir, "/")
    server = socket.create_server(("127.0.0.1", 0))
    with server, pytest.raises(IsolationError, match="PermissionError"):
        call_isolated(socket.create_connection, server.getsockname())
    with pytest.raises(IsolationError, match="PermissionError"):
        call_isolated(os.kill, os.getpid(), 0)


@pytest.mark.asyncio
async def test_a_call_that_spins_holds_nobody_and_ends_with_its_caller() -> None:
    spinning = asyncio.create_task(run_isolated(*SPINS, limits=OF_DOCUMENTS))
    for number in range(3):
        assert await run_isolated(math.factorial, number) == math.factorial(number)
    spinning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await spinning
    # Its place is free again, long before its own limits.
    calls = (run_isolated(str.upper, "done", limits=OF_DOCUMENTS) for _ in range(4))
    assert await asyncio.gather(*calls) == ["DONE"] * 4


def test_a_call_that_waits_too_long_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated_calls, "PATIENCE", -1.0)
    with pytest.raises(WorkspaceBusyError):
        call_isolated(os.getpid)


def test_a_call_server_that_was_killed_is_started_again() -> None:
    assert call_isolated(str.upper, "a") == "A"
    process = isolated_calls._server._process
    assert process is not None
    process.kill()
    process.wait()
    assert call_isolated(str.upper, "a") == "A"


def test_a_call_server_that_does_not_start_says_so_and_its_log_says_why(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(isolated_calls, "START", "raise SystemExit('broken on purpose')")
    monkeypatch.setattr(isolated_calls, "_server", isolated_calls._Server())
    with pytest.raises(ToolError, match="the log of the site says why") as refused:
        call_isolated(os.getpid)
    assert not isinstance(refused.value, IsolationError)
    assert "broken on purpose" in caplog.text


def test_what_a_call_has_started_ends_with_it() -> None:
    forks = "__import__('os').fork() or __import__('time').sleep(3600)"
    grandchild = call_isolated(eval, forks)
    assert grandchild > 0
    watched = Path(f"/proc/{grandchild}/stat")
    until = time.monotonic() + 60
    while watched.exists() and watched.read_text().split(")")[1].split()[0] != "Z":
        assert time.monotonic() < until
        time.sleep(0.02)


def test_an_exchange_has_one_deadline_however_its_bytes_drip() -> None:
    ours, theirs = socket.socketpair()
    over = threading.Event()

    def drip() -> None:
        while not over.wait(0.02):
            theirs.send(b"x")

    with ours, theirs:
        thread = threading.Thread(target=drip)
        thread.start()
        with pytest.raises(TimeoutError):
            receive_exactly(ours, 1_000_000, time.monotonic() + 0.5)
        over.set()
        thread.join()


def test_one_person_has_at_most_half_of_the_places_and_people_take_turns() -> None:
    queue, go_on, order = FairQueue(4), threading.Event(), list[str]()

    def note(name: str) -> None:
        order.append(name)
        go_on.wait()

    held = [queue.submit("flood", lambda: note("flood")) for _ in range(30)]
    # The other half is free, for one person after the other.
    assert queue.submit("a", lambda: "done").result(60) == "done"
    held += [queue.submit("a", lambda: note("a")) for _ in range(3)]
    assert queue.submit("b", lambda: "waits").running() is False
    while len(order) < 4:
        time.sleep(0.01)
    go_on.set()
    for each in held:
        each.result(60)
    assert sorted(order[:4]) == ["a", "a", "flood", "flood"]
    assert (order.count("flood"), order.count("a")) == (30, 3)


def test_work_that_was_cancelled_while_it_waited_is_not_done() -> None:
    queue, go_on = FairQueue(1), threading.Event()
    first, second, third = (queue.submit("a", go_on.wait) for _ in range(3))
    assert second.cancel()
    go_on.set()
    assert first.result(60)
    assert third.result(60)


@pytest.mark.asyncio
async def test_a_tool_s_calls_are_those_of_its_person(context: ToolContext) -> None:
    @tool(icon="tool", effect="read")
    async def asks(context: ToolContext) -> str:
        """Say for whom it works."""
        return current_person.get()

    assert (await execute_tool(asks, {}, context)).content == context.user_id
    assert current_person.get() == ""


@pytest.mark.parametrize(
    ("kind", "body"),
    [(b"j", b"[" * 100_000), (b"j", b"{"), (b"r", b"[]"), (b"t", b"\xff"), (b"?", b"x" * 500)],
)
def test_a_result_that_lies_is_an_error(kind: bytes, body: bytes) -> None:
    with pytest.raises(IsolationError):
        isolated_calls._decode_result(kind, body)


def test_a_refusal_is_always_one_of_ours() -> None:
    for name in ("ToolError", "is_of_full_disk", "SystemExit", "__name__"):
        with pytest.raises(ToolError, match="words"):
            isolated_calls._decode_result(b"r", json.dumps([name, "words", {}]).encode())
    with pytest.raises(InputError, match="words"):
        isolated_calls._decode_result(b"r", json.dumps(["InputError", "words", {}]).encode())
