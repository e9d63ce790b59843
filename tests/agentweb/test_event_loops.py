"""Servers run on uvloop's event loop, whoever imported Daphne before."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import uvloop

from agentweb.serving.event_loops import make_event_loop
from agentweb.serving.worker_loop import WorkerLoop
from tests.test_project import ROOT

_SERVER = """
import asyncio
import daphne.server
from agentweb.serving.event_loops import install_reactor

def tell():
    from twisted.internet import reactor
    print(type(asyncio.get_running_loop()).__module__, reactor is daphne.server.reactor)
    reactor.stop()

install_reactor()
daphne.server.reactor.callLater(0, tell)
daphne.server.reactor.run()
"""


def test_a_web_process_runs_on_uvloop() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SERVER],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "uvloop True\n"


def test_a_worker_runs_on_uvloop() -> None:
    loop = WorkerLoop()._loop
    try:
        assert isinstance(loop, uvloop.Loop)
    finally:
        loop.close()


def test_each_loop_is_a_new_one_and_commands_keep_asyncio() -> None:
    first, second = make_event_loop(), make_event_loop()
    try:
        assert first is not second
        assert not isinstance(asyncio.new_event_loop(), uvloop.Loop)
    finally:
        first.close()
        second.close()
