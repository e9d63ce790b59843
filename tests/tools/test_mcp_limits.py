"""What a server on standard input and output may send, and the limits that it runs with."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp_servers import command, pooled
from tools.mcp import stdio
from tools.mcp.errors import ServerError
from tools.mcp.traffic import count_parts


@pytest.mark.asyncio
async def test_commas_and_brackets_within_a_text_are_no_parts(tmp_path: Path) -> None:
    async with pooled(command(tmp_path, "commas")) as (pool, heard):
        await heard.until("connected")
        text = (await pool.call("demo", "look", heard.digests["look"], {})).content[0].text
    assert text == '1,[{"\\\n' * 200_000


def test_a_message_of_nothing_but_quotes_is_counted_without_taking_it_apart() -> None:
    assert count_parts(b'"' * 3_000_000 + b"," * 500_000) == 500_000
    assert count_parts(b'["a,b\\\\",{}]') == 4
    assert count_parts(b'{"a":"\\",' + b"," * 500_000 + b'"}') == 1


@pytest.mark.asyncio
async def test_a_server_that_does_not_read_is_disconnected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio, "READING", 0.5)
    async with pooled(command(tmp_path, "deaf")) as (pool, heard):
        await heard.until("connected")
        calls = [
            pool.call("demo", "look", heard.digests["look"], {"text": "x" * 1_000_000})
            for _ in range(2)
        ]
        async with asyncio.timeout(20):
            found = await asyncio.gather(*calls, return_exceptions=True)
            assert all(isinstance(each, ServerError) for each in found)
            assert "does not read" in (await heard.until("failed")).error


@pytest.mark.asyncio
async def test_a_limit_that_is_refused_is_said_and_the_others_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "setpriority", refuse)
    started = list[int]()
    limit = stdio._limit_process

    def note(pid: int) -> None:
        limit(pid)
        started.append(pid)

    monkeypatch.setattr(stdio, "_limit_process", note)
    async with pooled(command(tmp_path, "plain")) as (_, heard):
        await heard.until("connected")
        (pid,) = started
        if sys.platform.startswith("linux"):
            core = resource.prlimit(pid, resource.RLIMIT_CORE)
            assert core == (0, 0)
            assert resource.prlimit(pid, resource.RLIMIT_FSIZE)[0] == 1_000_000_000
    assert "runs without a limit on priority" in caplog.text
