"""Thirty hostile calls at once: each has a result, and nothing holds the loop meanwhile."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import Any

import pytest

from agentweb.bench.hostile_files import make_files
from agentweb.bench.hostile_script import CALLS
from agentweb.edge.watchdog import Watchdog
from tests.tools.conftest import Originals
from tests.tools.memory import MemoryWorkspace
from tools.framework.execute import execute_tool
from tools.framework.registry import TOOLS
from tools.framework.tool import ToolContext
from tools.workspace.workspace import Quota

pytestmark = pytest.mark.asyncio
#: Milliseconds of a block: what is searched here in the loop or its lock takes many times as long.
BLOCK = 2_000


async def test_thirty_hostile_calls_at_once_hold_nobody(context: ToolContext, caplog: Any) -> None:
    files = make_files()
    calls = [(name, TOOLS[tool], given) for name, (tool, given) in CALLS.items()] * 2
    assert len(calls) == 30
    threads: set[int] = set()

    class Workspace(MemoryWorkspace):
        def read(self, path: str) -> bytes:
            threads.add(threading.get_ident())
            return super().read(path)

    texts = Originals({"toolu_1": "a" * 2_000_000, "toolu_2": "aİ" * 500_000})
    dog = Watchdog(asyncio.get_running_loop(), BLOCK)
    dog.start()
    results = await asyncio.gather(*(
        execute_tool(
            tool,
            given,
            replace(context, workspace=Workspace(Quota(), dict(files)), originals=texts),
        )
        for _, tool, given in calls
    ))  # fmt: skip
    dog.stop()
    assert "the event loop has been busy" not in caplog.text
    assert threading.get_ident() not in threads
    said = {name: result for (name, _, _), result in zip(calls, results, strict=True)}
    for name in ("literal", "reversed", "markup", "tags", "json", "stars", "classes", "recall"):
        assert not said[name].is_error, (name, said[name])
    # Of these the reason is said; of the documents what was read, or why not.
    for name, code in {
        "brackets": "bad_input", "missing": "unknown_original", "growth": "bad_input",
        "junk": "file_refused",
    }.items():  # fmt: skip
        assert said[name].details["code"] == code, said[name]
