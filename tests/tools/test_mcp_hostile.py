"""Servers that lie, flood, hang and send requests: bounded, refused, ended."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import mcp_servers
from tests.support.mcp_servers import Heard, pooled
from tools.framework.execute import execute_tool
from tools.framework.tool import ToolContext
from tools.mcp import stdio
from tools.mcp.content import convert_result
from tools.mcp.definitions import compute_digest, read_definitions
from tools.mcp.errors import DefinitionChangedError, ServerError
from tools.mcp.offer import Approved, make_tool
from tools.mcp.pool import Pool
from tools.mcp.schemas import check_arguments, find_flaw

Fake = Callable[..., Any]


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    """Connect to the hostile server in a mode of its own."""
    return lambda mode, **facts: pooled(mcp_servers.command(tmp_path, mode), **facts)


async def look(pool: Pool, heard: Heard) -> Any:
    return await pool.call("demo", "look", heard.digests["look"], {})


def tool_of(pool: Pool, heard: Heard, **facts: Any) -> Any:
    """The tool as a conversation would have it."""
    one = next(tool for tool in heard.tools if tool.name == "look")
    approved = Approved(
        "demo", one.name, one.call_name, one.text, one.digest, "write", False,
        **{"deadline": 20.0} | facts,
    )  # fmt: skip
    return make_tool(approved, pool, lambda _data: "")


@pytest.mark.parametrize("mode", ["many", "endless"])
@pytest.mark.asyncio
async def test_a_list_without_measure_is_no_list(mode: str, fake: Fake) -> None:
    async with fake(mode) as (_, heard):
        assert "list" in (await heard.until("failed")).error
    assert heard.tools == ()


@pytest.mark.asyncio
async def test_a_schema_of_megabytes_is_named_and_not_kept(fake: Fake) -> None:
    async with fake("large") as (_, heard):
        await heard.until("connected")
    found = {tool.name: tool for tool in heard.tools}
    assert "bytes" in found["look"].flaw
    assert found["look"].text == ""
    assert found["small"].flaw == ""


@pytest.mark.asyncio
async def test_schemas_that_the_api_would_refuse_cannot_be_approved(fake: Fake) -> None:
    async with fake("schemas") as (_, heard):
        await heard.until("connected")
    flaws = {tool.name: tool.flaw for tool in heard.tools}
    assert flaws["tree"] == ""
    for name, words in {
        "circle": "itself", "outside": "refers", "wrong": "not valid",
        "a.b": "same name", "a_b": "same name", "odd": "characters", "": "no name",
    }.items():  # fmt: skip
        assert words in flaws[name], name
    assert "longer" in next(flaw for name, flaw in flaws.items() if len(name) > 100)
    assert all(len(tool.call_name) <= 128 for tool in heard.tools)


@pytest.mark.asyncio
async def test_a_name_never_meets_one_of_ours(fake: Fake) -> None:
    async with fake("inject") as (_, heard):
        await heard.until("connected")
    (tool,) = heard.tools
    assert (tool.name, tool.call_name) == ("read_file", "mcp__demo__read_file")
    assert tool.text.isascii()


@pytest.mark.asyncio
async def test_an_answer_counts_once_and_only_for_its_call(fake: Fake) -> None:
    async with fake("twice") as (pool, heard):
        await heard.until("connected")
        for _ in range(2):
            assert (await look(pool, heard)).content[0].text == "once"


@pytest.mark.asyncio
async def test_noise_between_messages_is_passed_over(fake: Fake) -> None:
    async with fake("noise") as (pool, heard):
        await heard.until("connected")
        assert (await look(pool, heard)).content[0].text == "after noise"


@pytest.mark.parametrize("mode", ["half", "huge", "flood", "pings", "bulk", "parts"])
@pytest.mark.asyncio
async def test_a_server_that_breaks_off_or_floods_is_cut_off(mode: str, fake: Fake) -> None:
    async with fake(mode) as (pool, heard):
        await heard.until("connected")
        with pytest.raises(ServerError):
            await look(pool, heard)
        error = (await heard.until("failed")).error
    assert {
        "half": "code 3", "huge": "bytes", "flood": "messages", "bulk": "bytes in 10",
        "parts": "400,000 parts", "pings": "100 requests in 10",
    }[mode] in error  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "words"),
    [("spin", "computed for more than 2 seconds"), ("greed", "ended with code 1")],
)
@pytest.mark.asyncio
async def test_a_server_that_spins_or_takes_all_memory_is_ended(
    mode: str, words: str, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(stdio.LIMITS, resource.RLIMIT_CPU, 2)
    monkeypatch.setitem(stdio.LIMITS, resource.RLIMIT_DATA, 800_000_000)
    async with fake(mode) as (pool, heard):
        await heard.until("connected")
        with pytest.raises(ServerError):
            await look(pool, heard)
        assert words in (await heard.until("failed")).error


@pytest.mark.asyncio
async def test_a_result_of_another_shape_is_an_error(fake: Fake) -> None:
    async with fake("wrong") as (pool, heard):
        await heard.until("connected")
        with pytest.raises(ServerError, match="does not follow the protocol"):
            await look(pool, heard)


@pytest.mark.asyncio
async def test_what_a_server_asks_for_is_refused(fake: Fake) -> None:
    async with fake("asks") as (pool, heard):
        await heard.until("connected")
        assert (await look(pool, heard)).content[0].text == "refused: [True, True, True]"


@pytest.mark.asyncio
async def test_a_shouting_server_writes_into_no_log(fake: Fake, caplog: Any, capfd: Any) -> None:
    with caplog.at_level(logging.DEBUG, "tools"), caplog.at_level(logging.DEBUG, "agentweb"):
        async with fake("loud") as (pool, heard):
            await heard.until("connected")
            assert (await look(pool, heard)).content[0].text == "shouted"
    assert "canary" not in caplog.text
    assert "canary" not in "".join(capfd.readouterr())


@pytest.mark.asyncio
async def test_why_a_server_does_not_start_is_told(fake: Fake) -> None:
    async with fake("fails") as (_, heard):
        error = (await heard.until("failed")).error
    assert "no such database" in error or "closed" in error.lower()


@pytest.mark.asyncio
async def test_of_a_server_that_cannot_be_written_to_its_end_is_told(fake: Fake) -> None:
    async with fake("leaves") as (_, heard):
        assert "It ended with code 7." in (await heard.until("failed")).error


@pytest.mark.asyncio
async def test_a_server_that_never_answers_is_left_at_once(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.mcp.connection.PATIENCE", 300.0)
    monkeypatch.setattr("tools.mcp.connection.ENDING", 300.0)
    async with fake("mute") as (pool, heard):
        async with asyncio.timeout(60):
            while not (tmp_path / "asked").exists():
                await asyncio.sleep(0.02)
            await pool.close()
    assert heard.state == "idle"


@pytest.mark.asyncio
async def test_a_secret_that_a_server_repeats_is_not_told(tmp_path: Path) -> None:
    place = mcp_servers.command(tmp_path, "repeats", TOKEN="canary-of-a-token")
    async with pooled(place) as (_, heard):
        error = (await heard.until("failed")).error
    assert "canary" not in error
    assert "[secret]" in error


@pytest.mark.asyncio
async def test_a_definition_that_changes_is_not_run_again(fake: Fake) -> None:
    async with fake("swap") as (pool, heard):
        await heard.until("connected")
        approved = tool_of(pool, heard)
        digest = heard.digests["look"]
        await look(pool, heard)
        async with asyncio.timeout(60):
            while heard.digests["look"] == digest:
                await asyncio.sleep(0.05)
        with pytest.raises(DefinitionChangedError, match="approve it again"):
            await pool.call("demo", "look", digest, {})
    assert approved.description == "Looks."


@pytest.mark.asyncio
async def test_a_call_that_is_never_answered_ends_at_its_deadline(
    fake: Fake, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.mcp.offer.REACH", 0.0)
    async with fake("never") as (pool, heard):
        await heard.until("connected")
        found = await execute_tool(tool_of(pool, heard, deadline=0.5), {}, context)
    assert found.is_error
    assert found.details["code"] == "timeout"
    assert "outcome is unknown" in str(found.content)


@pytest.mark.asyncio
async def test_a_tool_says_whom_it_tells_and_checks_what_it_sends(
    fake: Fake, context: ToolContext
) -> None:
    async with fake("plain") as (pool, heard):
        await heard.until("connected")
        tool = tool_of(pool, heard)
        assert tool.destination is not None
        assert (tool.name, tool.destination({})) == ("mcp__demo__look", "mcp:demo")
        assert (await execute_tool(tool, {}, context)).content == "looked"
        assert (await execute_tool(tool, [], context)).details["code"] == "bad_input"
        pool_is_off = await pool.keep([], heard)
        assert pool_is_off is None
        assert (await execute_tool(tool, {}, context)).details["code"] == "mcp_off"


@pytest.mark.asyncio
async def test_a_child_that_will_not_end_is_killed_with_its_children(
    fake: Fake, tmp_path: Path
) -> None:
    async with fake("stubborn") as (_, heard):
        await heard.until("connected")
        grandchild = int((tmp_path / "grandchild").read_text())
        os.kill(grandchild, 0)
    async with asyncio.timeout(60):
        while is_alive(grandchild):
            await asyncio.sleep(0.05)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_digest_does_not_depend_on_the_order_of_keys() -> None:
    one = {"name": "a", "inputSchema": {"type": "object", "title": "x"}}
    other = {"inputSchema": {"title": "x", "type": "object"}, "name": "a"}
    assert compute_digest(one) == compute_digest(other)
    (same,), (again,) = read_definitions("s", [one]), read_definitions("s", [other])
    assert same.digest == again.digest
    assert list(json.loads(again.text)["inputSchema"]) == ["title", "type"]


@pytest.mark.parametrize(
    "schema",
    [
        None, [], {}, {"type": "string"},
        {"type": "object", "$ref": "#"},
        {"type": "object", "allOf": [{"$ref": "#"}]},
        {"type": "object", "properties": {"a": {"$ref": "#/no/such"}}},
        {"type": "object", "required": "a"},
        {"type": "object", "oneOf": [{"type": "object"}]},
        {"type": "object", "properties": {"a b": {}}},
        {"type": "object", "properties": {"a": {"items": {"properties": {"a\n": {}}}}}},
        {"type": "object", "properties": {"a": {"type": "object", "anyOf": 4}}},
        {"type": "object", "properties": {"a": {"pattern": "(" * 3_000 + ")" * 3_000}}},
        {"type": "object", "properties": {"a": {"pattern": "a{99999999999999999999}"}}},
        {"type": "object", "anyOf": [{"$ref": "#/anyOf/" + "9" * 5_000}]},
    ],
)  # fmt: skip
def test_a_schema_with_a_flaw_has_words_for_it(schema: Any) -> None:
    assert find_flaw(schema).endswith(".")


def test_names_that_the_model_takes_and_data_in_a_schema_are_no_flaw() -> None:
    named = {"a": {"default": {"properties": {"a b": 1}}}, "properties": {"anyOf": [{}]}}
    assert find_flaw({"type": "object", "properties": {"a" * 64: {}, "a.b-c_D": {}} | named}) == ""


def test_a_deep_schema_has_a_flaw() -> None:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(3_000):
        schema = {"type": "object", "properties": {"a": schema}}
    assert "deeper" in find_flaw(schema)


def test_each_part_of_a_schema_is_looked_at_once_whatever_refers_to_it() -> None:
    def bomb(width: int) -> dict[str, Any]:
        many = [{"$ref": "#b"} for _ in range(width)]
        named = {"x": {"$anchor": "a", "anyOf": many}, "y": {"$anchor": "b"}}
        refer = [{"$ref": "#a"} for _ in range(width)]
        return {"type": "object", "$defs": named, "properties": {"all": {"allOf": refer}}}

    def steps(schema: dict[str, Any]) -> int:
        calls = 0

        def count(*_: Any) -> None:
            nonlocal calls
            calls += 1

        before = sys.getprofile()
        sys.setprofile(count)
        try:
            assert find_flaw(schema) == ""
        finally:
            sys.setprofile(before)
        return calls

    find_flaw(bomb(1))
    assert steps(bomb(80)) < 3 * steps(bomb(40))


def test_a_reference_in_a_circle_is_found_through_names_and_pointers() -> None:
    circle = {"x": {"$anchor": "a", "anyOf": [{"$ref": "#/$defs/y"}]}, "y": {"not": {"$ref": "#a"}}}
    tree = {"x": {"$anchor": "a", "items": {"$ref": "#a"}}}
    refer = {"type": "object", "properties": {"all": {"allOf": [{"$ref": "#a"}]}}}
    assert "itself" in find_flaw(refer | {"$defs": circle})
    assert find_flaw(refer | {"$defs": tree}) == ""


@pytest.mark.asyncio
async def test_a_list_of_tools_is_bounded_as_a_whole(fake: Fake) -> None:
    async with fake("heavy") as (_, heard):
        status = await heard.until("failed")
    assert "too large" in status.error
    assert heard.tools == ()


def test_patterns_of_others_are_not_run_here() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(a+)+$"}}}
    assert find_flaw(schema) == ""
    assert check_arguments({"a": "a" * 50_000 + "!"}, schema)


def test_of_a_failed_call_only_words_go_on() -> None:
    from mcp_types import CallToolResult, ImageContent

    image = ImageContent(type="image", data="aGVsbG8=", mime_type="image/png")
    found = CallToolResult(content=[image] * 101, is_error=True)
    result = convert_result("demo", found, lambda _data: "image/png")
    assert result.is_error
    assert isinstance(result.content, str)
    assert "[left out: 1 more parts]" in result.content
