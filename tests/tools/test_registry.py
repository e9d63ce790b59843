"""Whatever a tool does, its result can be stored and sent to the API and the model."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tools.framework.execute import execute_tool
from tools.framework.registry import TOOLS
from tools.framework.tool import Effect, Tool, ToolContext, ToolResult, tool
from tools.framework.toolset import Toolset
from tools.mcp.schemas import find_flaw

pytestmark = pytest.mark.asyncio

run = Toolset(TOOLS).run

INPUTS = {
    "list_files": {"path": ""},
    "read_file": {
        "path": None,
        "offset": 0,
        "limit": 0,
        "part": "",
        "source": False,
        "start": 0,
    },
    "write_file": {"path": None, "content": None},
    "fetch_url": {"url": None, "start": 0, "length": 0},
    "recall": {"id": "", "query": "", "start": 0, "length": 20_000, "matching": ""},
    "current_time": {"zone": "UTC"},
}


async def test_the_inputs_are_the_ones_agreed() -> None:
    for each in Toolset(TOOLS).definitions():
        assert set(each) == {"name", "description", "input_schema"}
        properties = each["input_schema"]["properties"]
        if each["name"] in INPUTS:
            defaults = {name: value.get("default") for name, value in properties.items()}
            assert defaults == INPUTS[each["name"]]
        assert all(value["description"] for value in properties.values())


async def test_no_tool_takes_a_user_a_root_or_a_key() -> None:
    for each in TOOLS.values():
        assert not {"user", "user_id", "root", "key", "owner"} & set(
            each.input_schema["properties"]
        )


async def test_the_tools_load_without_django() -> None:
    program = "import sys, tools.framework.registry; sys.exit('django' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=Path(__file__).parents[2], check=False
    )
    assert done.returncode == 0


@pytest.mark.parametrize("name", ["", "nope", "Read_File", "x" * 10_000, "a\ud800"])
async def test_an_unknown_tool_is_answered_with_the_known_ones(
    name: str, context: ToolContext
) -> None:
    result = await run(name, {}, context)
    assert (result.is_error, result.details["code"]) == (True, "unknown_tool")
    assert "read_file" in result.content
    assert len(result.content) < 400
    json.dumps(result.content).encode()


def deep() -> Any:
    value: Any = []
    for _ in range(5_000):
        value = [value]
    return value


@pytest.mark.parametrize("value", [None, [], "{}", {"path": 1}, {"x": 1}, {"path": deep()}, deep()])
async def test_a_bad_input_is_an_error_result(value: object, context: ToolContext) -> None:
    result = await run("read_file", value, context)
    assert (result.is_error, result.details["code"]) == (True, "bad_input")


def build(body: Any, effect: Effect = "read", timeout: float = 60, max_bytes: int = 1_000) -> Tool:
    @tool(icon="tool", effect=effect, timeout=timeout, max_bytes=max_bytes)
    async def sample(context: ToolContext, text: str = "") -> str | ToolResult:
        """Do as the test says."""
        return await body(context, text)

    return sample


def answering(content: Any, **rest: Any) -> Tool:
    async def body(_context: ToolContext, _text: str) -> ToolResult | str:
        return ToolResult(content, **rest) if rest or not isinstance(content, str) else content

    return build(body)


async def test_an_exception_is_named_by_class_and_logged_whole(
    context: ToolContext, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(_context: ToolContext, _text: str) -> str:
        raise OSError(13, "denied", "/srv/secret/key.pem")

    with caplog.at_level(logging.ERROR, "tools"):
        result = await execute_tool(build(body), {}, context)
    assert result.content == "The tool sample failed (PermissionError)."
    assert result.details == {"code": "failed"}
    assert "/srv/secret/key.pem" in caplog.text


@pytest.mark.parametrize(
    ("effect", "said"), [("read", "was stopped"), ("keyed", "unknown"), ("write", "unknown")]
)
async def test_a_late_tool_is_stopped_and_its_outcome_said(
    effect: Effect, said: str, context: ToolContext
) -> None:
    async def body(_context: ToolContext, _text: str) -> str:
        await asyncio.Event().wait()
        return ""

    result = await execute_tool(build(body, effect, timeout=0.05), {}, context)
    assert (result.is_error, result.details["code"]) == (True, "timeout")
    assert said in result.content


async def test_a_timeout_of_the_tools_own_is_its_failure(context: ToolContext) -> None:
    async def body(_context: ToolContext, _text: str) -> str:
        raise TimeoutError

    assert (await execute_tool(build(body), {}, context)).details["code"] == "failed"


async def test_cancellation_passes_through(context: ToolContext) -> None:
    async def body(_context: ToolContext, _text: str) -> str:
        begun.set()
        await asyncio.Event().wait()
        return ""

    begun = threading.Event()
    task = asyncio.create_task(execute_tool(build(body), {}, context))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancelled_turn_starts_no_tool(context: ToolContext) -> None:
    stopped = replace(context, cancelled=lambda: True)
    result = await run("write_file", {"path": "x", "content": "y"}, stopped)
    assert (result.is_error, result.details["code"]) == (True, "cancelled")
    assert context.workspace.entries() == []


async def test_text_is_cleaned_and_details_are_kept_apart(context: ToolContext) -> None:
    result = await execute_tool(answering("a\ud800b\0c", details={"file": "x"}), {}, context)
    assert result == ToolResult("a\ufffdb\ufffdc", details={"file": "x"})
    plain = await execute_tool(answering("plain"), {"text": "\udfff"}, context)
    assert plain == ToolResult("plain")


async def test_arguments_reach_the_tool_cleaned(context: ToolContext) -> None:
    async def body(_context: ToolContext, text: str) -> str:
        return repr(text)

    assert (
        await execute_tool(build(body), {"text": "a\ud800\0"}, context)
    ).content == "'a\ufffd\ufffd'"


async def test_long_output_is_cut_between_characters_and_says_so(context: ToolContext) -> None:
    result = await execute_tool(answering("x" + "é" * 2_000), {}, context)
    kept, _, notice = str(result.content).rpartition("\n")
    assert kept == "x" + "é" * 499
    digest = hashlib.sha256(("x" + "é" * 2_000).encode()).hexdigest()
    whole = f"1,000 of 4,001 bytes kept; SHA-256 of the whole: {digest}"
    assert notice == f"[output cut: {whole}]"
    assert result.details == {"bytes": 4_001, "kept_bytes": 999, "sha256": digest}


async def test_blocks_are_bounded_together(context: ToolContext) -> None:
    image = {"type": "image", "source": {"type": "base64", "data": "x" * 300}}
    large = {"type": "image", "source": {"type": "base64", "data": "x" * 3_000}}
    words = {"type": "text", "text": "\udc00" + "y" * 600}
    result = await execute_tool(answering([image, words, large, words]), {}, context)
    first, second, third, fourth = result.content
    assert first == image
    assert second["text"] == "\ufffd" + "y" * 600
    assert third["text"].startswith("[left out: image, 3,0")
    assert "of 603 bytes kept; SHA-256 of the whole: " in fourth["text"]


async def test_many_calls_at_once_do_not_harm_each_other(context: ToolContext) -> None:
    calls = [("current_time", {})] * 12 + [("nope", {})] + [("list_files", {})] * 12
    results = await asyncio.gather(*(run(name, value, context) for name, value in calls))
    assert [result.is_error for result in results] == [False] * 12 + [True] + [False] * 12


async def test_the_api_takes_the_schema_of_every_tool() -> None:
    assert {name: find_flaw(tool.input_schema) for name, tool in TOOLS.items()} == dict.fromkeys(
        TOOLS, ""
    )
