"""A result of any size and shape is bounded, and no other answer waits meanwhile."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tools.framework.clean_result import (
    DEEPEST,
    MOST_BLOCKS,
    MOST_DETAILS,
    PIECE,
    ResultError,
    clean_result,
)
from tools.framework.execute import execute_tool
from tools.framework.tool import Tool, ToolContext, ToolResult, tool

pytestmark = pytest.mark.asyncio
HUGE = 50_000_000


def giving(make: Callable[[], Any], most: int = 1_000_000) -> Tool:
    @tool(icon="tool", effect="read", max_bytes=most, timeout=60)
    async def sample(context: ToolContext) -> str | ToolResult:
        """Give what the test says."""
        found: str | ToolResult = make()
        return found

    return sample


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


def block(**fields: Any) -> ToolResult:
    return ToolResult([{"type": "custom", **fields}])


async def content(result: Any, most: int = 1_000_000) -> Any:
    return (clean_result(result, most)).content


@pytest.mark.parametrize(
    "text",
    [
        "x" * HUGE,
        "é" * (HUGE // 4),
        "\ud800" * (HUGE // 20),
        "a\0" * (HUGE // 10),
        "[" + "1," * (HUGE // 10) + "1]",
        "[" * (HUGE // 10),
        "x" * (PIECE - 1) + "é" * PIECE * 9,
    ],
    ids=["ascii", "accents", "halves", "nul", "items", "depth", "border"],
)
async def test_a_huge_text_keeps_its_beginning_and_says_its_true_size(text: str) -> None:
    result = clean_result(text, 1_000_000)
    kept, _, notice = str(result.content).rpartition("\n")
    clean = re.sub("[\0\ud800-\udfff]", "\ufffd", text)
    assert kept == clean.encode()[:1_000_000].decode(errors="ignore")
    assert result.details["bytes"] == len(clean.encode())
    assert result.details["sha256"] == hashlib.sha256(clean.encode()).hexdigest()
    assert f"{len(clean.encode()):,} bytes kept" in notice


async def test_a_huge_result_goes_on_beside_others(context: ToolContext) -> None:
    huge = [giving(lambda: "x" * HUGE), giving(lambda: block(items=[{"a": 1}] * 1_000_000))]
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    beside = asyncio.create_task(others())
    results = await asyncio.gather(*(execute_tool(each, {}, context) for each in huge))
    beside.cancel()
    # The loop went round many times while the two were read.
    assert turns > 20
    assert all(len(json.dumps(result.content)) < 1_100_000 for result in results)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"items": [{"a": 1}] * 1_000_000}, "too many parts"),
        ({"items": nested(DEEPEST + 1)}, "nested too deeply"),
        ({"items": nested(100_000)}, "nested too deeply"),
        ({"data": "x" * HUGE}, "50,000,0"),
        ({"data": b"bytes"}, "not JSON"),
        ({"data": float("nan")}, "not JSON"),
        ({"data": 10**5000}, "not JSON"),
        ({"data": {("a", "b"): 1}}, "not JSON"),
        ({"data": "\\" * 600_000}, "1,200,0"),
    ],
)
async def test_a_block_that_cannot_be_kept_is_said_in_its_place(
    fields: dict[str, Any], said: str
) -> None:
    (kept,) = await content(block(**fields))
    assert kept["type"] == "text"
    assert kept["text"].startswith("[left out: custom, ")
    assert said in kept["text"]


@pytest.mark.parametrize("odd", [None, 7, "text", {}, {"type": 5}, {"type": "text", "text": None}])
async def test_what_is_no_block_is_left_out(odd: Any) -> None:
    (kept,) = await content(ToolResult([odd]))
    assert kept["text"].startswith("[left out: a ")


async def test_a_block_is_kept_clean_and_a_text_alone() -> None:
    given = [
        {"type": "image", "source": {"data": "a\ud800\0"}},
        {"type": "text", "text": "b\0", "citations": [{"x": 1}]},
    ]
    first, second = await content(ToolResult(given))
    assert first == {"type": "image", "source": {"data": "a\ufffd\ufffd"}}
    assert second == {"type": "text", "text": "b\ufffd"}


async def test_a_result_has_so_many_blocks() -> None:
    given = [{"type": "text", "text": str(n)} for n in range(MOST_BLOCKS + 1_000)]
    kept = await content(ToolResult(given))
    assert kept[:-1] == given[:MOST_BLOCKS]
    assert kept[-1]["text"] == "[left out: 1,000 more blocks]"


@pytest.mark.parametrize(
    "details",
    [{"x": "y" * (MOST_DETAILS + 1)}, {"x": object()}, ["x"], {"x": nested(DEEPEST)}],
)
async def test_details_that_no_record_takes_are_left_out(details: Any) -> None:
    assert (clean_result(ToolResult("a", details=details), 9)).details == {"left_out": "details"}


@pytest.mark.parametrize("odd", [None, 7, b"x", ("a",), ToolResult(None)])  # type: ignore[arg-type]
async def test_what_is_no_result_is_a_failure_of_the_tool(odd: Any, context: ToolContext) -> None:
    with pytest.raises(ResultError):
        clean_result(odd, 9)
    result = await execute_tool(giving(lambda: odd), {}, context)
    assert (result.is_error, result.details) == (True, {"code": "failed"})


async def test_a_result_within_its_cap_is_what_it_was() -> None:
    assert clean_result("é" * 500, 1_000) == ToolResult("é" * 500)
    whole = ToolResult("a", is_error=True, details={"n": [1, None, True, 0.5]})
    assert clean_result(whole, 1) == whole
