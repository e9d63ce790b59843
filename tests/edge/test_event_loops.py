"""Servers run on uvloop's event loop; commands do not."""

from __future__ import annotations

import asyncio

import pytest
import uvloop

from agentweb.serving.worker_loop import WorkerLoop
from tests.e2e.served import Served
from tests.edge.wire import get


@pytest.mark.asyncio
async def test_a_web_process_runs_on_uvloop(plain: Served) -> None:
    assert b"\r\nuvloop\r\n" in await get(plain, "/loop/")


def test_a_worker_runs_on_uvloop() -> None:
    loop = WorkerLoop()._loop
    try:
        assert isinstance(loop, uvloop.Loop)
    finally:
        loop.close()


def test_a_command_runs_on_asyncio() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    assert not isinstance(loop, uvloop.Loop)
