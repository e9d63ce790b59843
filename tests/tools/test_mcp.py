"""Real MCP servers of both transports: connected to, called, lost and connected to again."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from conversations.toolbox.mcp.approved_tools import detect_image_type
from tests.support import mcp_servers, small_files
from tests.support.mcp_servers import Heard, HttpServer, pooled
from tools.framework.outside_access import WebAccess
from tools.mcp import connection
from tools.mcp.content import convert_result
from tools.mcp.errors import DefinitionChangedError, ServerError, ServerOffError
from tools.mcp.pool import Pool
from tools.mcp.server import Address, Command


@pytest.fixture(scope="module")
def site() -> Iterator[HttpServer]:
    with mcp_servers.over_http() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["stdio", "http"])
async def demo(
    request: Any, site: HttpServer, tmp_path_factory: Any
) -> AsyncIterator[tuple[Pool, Heard]]:
    place: Command | Address = mcp_servers.address(site.port)
    if request.param == "stdio":
        place = mcp_servers.command(tmp_path_factory.mktemp("mcp") / "run", FOO="bar")
    async with pooled(place) as (pool, heard):
        await heard.until("connected")
        yield pool, heard


async def call_tool(demo: tuple[Pool, Heard], tool: str, **arguments: Any) -> Any:
    pool, heard = demo
    return await pool.call("demo", tool, heard.digests[tool], arguments)


@pytest.mark.asyncio(loop_scope="module")
async def test_the_tools_are_listed_under_the_name_of_their_server(demo: Any) -> None:
    names = {tool.name: tool.call_name for tool in demo[1].tools}
    assert names["add"] == "mcp__demo__add"
    assert not any(tool.flaw for tool in demo[1].tools)
    definition = json.loads(demo[1].tools[0].text)
    assert definition["description"] == mcp_servers.WORDS
    assert definition["annotations"] == {"readOnlyHint": True}
    assert "demo" in demo[1].statuses[-1].says


@pytest.mark.asyncio(loop_scope="module")
async def test_a_call_gives_what_the_tool_gave(demo: Any) -> None:
    found = convert_result("demo", await call_tool(demo, "add", a=1, b=2), detect_image_type)
    assert (found.content, found.is_error) == ("3", False)


@pytest.mark.asyncio(loop_scope="module")
async def test_structured_content_is_said_once_as_json(demo: Any) -> None:
    found = convert_result("demo", await call_tool(demo, "facts"), detect_image_type)
    assert isinstance(found.content, str)
    assert json.loads(found.content) == {"answer": 42, "words": ["a", "b"]}


@pytest.mark.asyncio(loop_scope="module")
async def test_images_and_resources_arrive_and_links_are_words(demo: Any) -> None:
    found = convert_result("demo", await call_tool(demo, "picture"), detect_image_type)
    assert isinstance(found.content, list)
    words, image, resource, link = found.content
    assert words == {"type": "text", "text": "Here it is."}
    assert image["source"]["media_type"] == "image/png"
    assert "file:///plan.txt" in resource["text"]
    assert "4711" in resource["text"]
    assert "http://127.0.0.1:9/secret" in link["text"]
    assert "not opened" in link["text"]


@pytest.mark.asyncio(loop_scope="module")
async def test_an_error_of_the_tool_stays_an_error(demo: Any) -> None:
    found = convert_result("demo", await call_tool(demo, "boom"), detect_image_type)
    assert found.is_error
    assert found.details["code"] == "mcp_error"


@pytest.mark.asyncio(loop_scope="module")
async def test_calls_run_side_by_side_and_a_cancelled_one_hurts_no_other(demo: Any) -> None:
    calls = [asyncio.create_task(call_tool(demo, "wait", seconds=0.2)) for _ in range(10)]
    late = asyncio.create_task(call_tool(demo, "wait", seconds=60))
    await asyncio.sleep(0.1)
    late.cancel()
    found = await asyncio.gather(*calls, late, return_exceptions=True)
    assert isinstance(found[-1], asyncio.CancelledError)
    assert [one.content[0].text for one in found[:-1]] == ["waited"] * 10
    assert (await call_tool(demo, "add", a=2, b=2)).content[0].text == "4"


@pytest.mark.asyncio(loop_scope="module")
async def test_only_what_was_approved_is_run(demo: Any) -> None:
    with pytest.raises(DefinitionChangedError, match="approve it again"):
        await demo[0].call("demo", "add", "sha256:other", {"a": 1, "b": 1})
    with pytest.raises(DefinitionChangedError):
        await demo[0].call("demo", "nothing", "sha256:other", {})
    with pytest.raises(ServerOffError):
        await demo[0].call("other", "add", demo[1].digests["add"], {})


@pytest.mark.asyncio(loop_scope="module")
async def test_a_child_has_the_environment_it_was_given_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY_KEY", "canary")
    async with pooled(mcp_servers.command(tmp_path, FOO="b $HOME;`id`")) as demo:
        await demo[1].until("connected")
        told = (await call_tool(demo, "told")).content[0].text.splitlines()
    names = {line.partition("=")[0] for line in told}
    assert names <= {"FOO", "PYTHONPATH", "LC_CTYPE", "PWD", "SHLVL", "_"}
    assert "FOO=b $HOME;`id`" in told


@pytest.mark.asyncio(loop_scope="module")
async def test_a_result_of_many_megabytes_ends_the_connection_and_the_next_one_works(
    demo: Any,
) -> None:
    heard = demo[1]
    with pytest.raises(ServerError):
        await call_tool(demo, "much", megabytes=40)
    await heard.until("connected")
    assert (await call_tool(demo, "add", a=1, b=1)).content[0].text == "2"


@pytest.mark.asyncio(loop_scope="module")
async def test_a_killed_server_fails_its_open_calls_and_is_connected_to_again(
    tmp_path: Path,
) -> None:
    async with pooled(mcp_servers.command(tmp_path)) as (pool, heard):
        await heard.until("connected")
        call = asyncio.create_task(
            pool.call("demo", "wait", heard.digests["wait"], {"seconds": 60})
        )
        await asyncio.sleep(0.3)
        os.kill(child_of(tmp_path), 9)
        with pytest.raises(ServerError, match="outcome is unknown"):
            await call
        assert (await heard.until("failed")).error
        await heard.until("connected")
        assert (await call_tool((pool, heard), "add", a=1, b=1)).content[0].text == "2"
    assert heard.state == "idle"


def child_of(folder: Path) -> int:
    """Return the process that runs in a folder."""
    found = [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdecimal() and os.access(entry / "cwd", os.R_OK) and runs_in(entry, folder)
    ]
    assert len(found) == 1
    return found[0]


def runs_in(entry: Path, folder: Path) -> bool:
    try:
        return (entry / "cwd").resolve() == folder.resolve()
    except OSError:
        return False


@pytest.mark.asyncio(loop_scope="module")
async def test_a_site_that_went_away_is_found_again() -> None:
    with mcp_servers.over_http() as running:
        async with pooled(mcp_servers.address(running.port), check_seconds=0.2) as demo:
            await demo[1].until("connected")
            call = asyncio.create_task(call_tool(demo, "wait", seconds=60))
            await asyncio.sleep(0.3)
            running.kill()
            with pytest.raises(ServerError):
                await call
            await demo[1].until("failed")
            with pytest.raises(ServerError, match="cannot be used now"):
                await call_tool(demo, "add", a=1, b=1)
            running.start()
            demo[0].request_check("demo")
            await demo[1].until("connected")
            assert (await call_tool(demo, "add", a=1, b=1)).content[0].text == "2"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/mcp",
        "http://localhost:{port}/mcp",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]:{port}/mcp",
        "http://10.0.0.1/mcp",
    ],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_no_server_is_reached_inside_that_was_not_opened_by_name(
    url: str, site: HttpServer
) -> None:
    place = Address(url.format(port=site.port), (("Authorization", "Bearer canary"),), WebAccess())
    async with pooled(place) as (pool, heard):
        status = await heard.until("failed")
        assert "refused" in status.error
        assert "canary" not in status.error
        assert "canary" not in repr(place)
        with pytest.raises(ServerError):
            await pool.call("demo", "add", "sha256:x", {})
    assert heard.tools == ()


@pytest.mark.asyncio(loop_scope="module")
async def test_headers_go_with_every_request_and_redirects_lead_nowhere(serve: Any) -> None:
    other = await serve(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    moved = f"HTTP/1.1 307 Moved\r\nLocation: {other.url}/mcp\r\nContent-Length: 0\r\n\r\n"
    site = await serve(moved.encode())
    access = WebAccess(
        allowed_private=frozenset({f"127.0.0.1:{site.port}", f"127.0.0.1:{other.port}"})
    )
    place = Address(f"{site.url}/mcp", (("Authorization", "Bearer canary"),), access)
    async with pooled(place) as (_, heard):
        await heard.until("failed")
    assert site.heads
    assert all("authorization: bearer canary" in head.lower() for head in site.heads)
    assert other.connections == 0


@pytest.mark.asyncio(loop_scope="module")
async def test_a_command_that_is_not_there_is_said(tmp_path: Path) -> None:
    place = Command("no-such-command", ("; touch x", "$(id)"), (), tmp_path)
    async with pooled(place) as (_, heard):
        assert "not there" in (await heard.until("failed")).error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.asyncio(loop_scope="module")
async def test_a_server_that_is_away_for_days_is_still_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "LONGEST_DELAY", 0.0)
    place = Command("no-such-command", (), (), tmp_path)
    async with pooled(place) as (_, heard):
        for _attempt in range(1_100):
            await heard.until("failed")


@pytest.mark.asyncio(loop_scope="module")
async def test_a_connection_whose_task_is_over_is_replaced(tmp_path: Path) -> None:
    place = mcp_servers.command(tmp_path / "run")
    before = asyncio.all_tasks()
    async with pooled(place) as (pool, heard):
        await heard.until("connected")
        begun = asyncio.all_tasks() - before
        (task,) = (each for each in begun if each.get_name() == "mcp-demo")
        task.cancel()
        await asyncio.wait([task])
        await pool.keep([mcp_servers.server(place)], heard)
        await heard.until("connected")
        assert (await call_tool((pool, heard), "add", a=1, b=1)).content[0].text == "2"


def test_what_is_no_image_is_left_out() -> None:
    assert detect_image_type(small_files.png(5, 5)) == "image/png"
    assert detect_image_type(b"<svg onload=alert(1)>") == ""
    assert detect_image_type(small_files.pdf()) == ""
    assert detect_image_type(b"") == ""
