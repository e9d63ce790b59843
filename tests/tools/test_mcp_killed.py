"""What a server on standard input and output leaves behind when its parent is killed: nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.mcp_servers import ROOT, command, pooled
from tests.tools.test_mcp_hostile import is_alive
from tools.mcp import stdio
from tools.mcp.group_watch import GroupWatch

#: Seconds until the processes are gone, on a busy machine.
SOON = 20.0


async def hold(folder: Path) -> None:
    """Connect to a server that ends neither with its input nor on SIGTERM, and wait."""
    async with pooled(command(folder, "stubborn")) as (_, heard):
        await heard.until("connected")
        sys.stdout.write("connected\n")
        sys.stdout.flush()
        await asyncio.sleep(600)


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_server_and_its_children_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.tools.test_mcp_killed", str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "connected\n"
        grandchild = int((tmp_path / "grandchild").read_text())
        leader = os.getpgid(grandchild)
        try:
            assert is_alive(leader)
            assert is_alive(grandchild)
            parent.send_signal(signal.SIGKILL)
            wait_until(lambda: not is_alive(leader) and not is_alive(grandchild))
        finally:
            if is_alive(grandchild):
                os.killpg(leader, signal.SIGKILL)


@pytest.mark.asyncio
async def test_a_watch_that_was_killed_is_started_again_with_all_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = GroupWatch()
    monkeypatch.setattr(stdio, "group_watch", watch)
    async with pooled(command(tmp_path / "one", "plain")) as (_, heard):
        await heard.until("connected")
        first = watch._process
        assert first is not None
        first.kill()
        first.wait()
        async with pooled(command(tmp_path / "other", "plain")) as (_, others):
            await others.until("connected")
            second = watch._process
            assert second is not None
            assert second.poll() is None
            assert len(watch._groups) == 2
    assert watch._groups == set()
    assert second.stdin is not None
    second.stdin.close()
    assert second.wait(SOON) == 0


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a Python that finds its libraries only where LD_LIBRARY_PATH names their folder."""
    loader = tmp_path / "python"
    loader.write_text(
        f'#!/bin/sh\n[ "$LD_LIBRARY_PATH" = {tmp_path} ] && exec {sys.executable} "$@"\n'
        'echo "error while loading shared libraries" >&2; exit 127\n'
    )
    loader.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(loader))


@pytest.fixture
def group() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as started:
        yield started
        started.kill()


def test_the_watch_runs_where_python_needs_the_path_of_its_libraries(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    python: None,
    group: subprocess.Popen[bytes],
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    monkeypatch.setenv("AGENTWEB_SECRET", "none of its business")
    watch = GroupWatch()
    watch.add(group.pid)
    assert watch._process is not None
    assert watch._process.stdin is not None
    own = Path(f"/proc/{watch._process.pid}/environ")
    assert not own.exists() or b"AGENTWEB" not in own.read_bytes()
    watch._process.stdin.close()
    assert group.wait(SOON) == -signal.SIGTERM
    assert watch._process.wait(SOON) == 0


def test_a_watch_that_ends_too_early_is_told_in_the_log(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    python: None,
    group: subprocess.Popen[bytes],
) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    watch = GroupWatch()
    watch.add(group.pid)
    why = "ended with code 127: error while loading shared libraries"

    def told() -> list[str]:
        return [row.levelname for row in caplog.records if why in row.getMessage()]

    wait_until(lambda: bool(told()))
    assert told() == ["ERROR"]
    # The next server has it tried again.
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    watch.add(group.pid)
    assert "would outlive this process if it was killed" in caplog.records[-1].getMessage()
    assert "/nowhere/python" in caplog.records[-1].getMessage()


if __name__ == "__main__":
    asyncio.run(hold(Path(sys.argv[1])))
