"""Thirty hostile calls at once: each has a result, and nothing holds the loop meanwhile."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentweb.bench.hostile_files import make_files
from agentweb.bench.hostile_script import CALLS, FETCHED, MATCHING
from agentweb.bench.spinning_server import __file__ as spinning_server
from agentweb.edge.watchdog import Watchdog
from conversations.context.view.searched_originals import SearchedOriginal
from conversations.transcript.search_originals import search_originals
from tests.support.mcp_servers import pooled
from tests.tools.conftest import Originals
from tests.tools.memory import MemoryWorkspace
from tools.framework.execute import execute_tool
from tools.framework.registry import TOOLS
from tools.framework.tool import FoundOriginal, Tool, ToolContext
from tools.isolation import isolated_calls
from tools.mcp.offer import Approved, make_tool
from tools.mcp.server import Command
from tools.workspace.workspace import Quota

pytestmark = pytest.mark.asyncio
#: Milliseconds of a block: what is searched here in the loop or its lock takes many times as long.
BLOCK = 2_000


class Searched(Originals):
    """Originals that are searched as the site searches them."""

    async def search(self, query: str, most: int) -> list[FoundOriginal]:
        texts = [SearchedOriginal(key, "a page", text) for key, text in self.texts.items()]
        return await search_originals(texts, query, most)


@asynccontextmanager
async def spinning(folder: Path) -> AsyncIterator[Tool]:
    """A tool of a real server that burns a core at its first call and never answers."""
    place = Command(sys.executable, ("-I", spinning_server), (), folder)
    async with pooled(place) as (pool, heard):
        await heard.until("connected")
        (one,) = heard.tools
        approved = Approved(
            "demo", one.name, one.call_name, one.text, one.digest, "read", False, deadline=2.0
        )
        yield make_tool(approved, pool, lambda _data: "")


async def test_thirty_hostile_calls_at_once_hold_nobody(
    context: ToolContext, caplog: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.mcp.offer.REACH", 0.0)
    monkeypatch.setattr(isolated_calls, "PATIENCE", 600.0)
    files, threads = make_files(), set[int]()

    class Workspace(MemoryWorkspace):
        def read(self, path: str) -> bytes:
            threads.add(threading.get_ident())
            return super().read(path)

    texts = Searched({"toolu_1": FETCHED, "toolu_2": "aİ" * 500_000})
    named = CALLS | {"matching": ("recall", {"id": "toolu_1", "matching": MATCHING})}
    async with spinning(tmp_path) as spin:
        # Whatever else the machine does: they wait for each other as long as it takes.
        tools = {name: replace(tool, timeout=600) for name, tool in TOOLS.items()}
        tools["mcp__spinning__spin"] = spin
        calls = [(name, tools[tool], given) for name, (tool, given) in named.items()] * 2
        assert len(calls) >= 30
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
    done = "literal reversed markup tags json stars classes recall matching"
    for name in done.split():
        assert not said[name].is_error, (name, said[name])
    # Of these the reason is said; of the documents what was read, or why not.
    for name, code in {
        "brackets": "bad_input", "missing": "unknown_original", "growth": "bad_input",
        "junk": "file_refused", "spin": "timeout",
    }.items():  # fmt: skip
        assert said[name].details["code"] == code, said[name]
