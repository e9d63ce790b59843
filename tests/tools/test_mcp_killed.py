"""What a server on standard input and output leaves behind when its parent is killed: nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
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


if __name__ == "__main__":
    asyncio.run(hold(Path(sys.argv[1])))
