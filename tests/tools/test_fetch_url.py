"""The tool `fetch_url`: what it returns for each kind of answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tools.framework.registry import TOOLS
from tools.framework.tool import ToolContext, ToolResult
from tools.framework.toolset import Toolset

pytestmark = pytest.mark.asyncio

run = Toolset(TOOLS).run

Reply = Callable[..., bytes]


async def fetched(context: ToolContext, site: Any, path: str = "/") -> ToolResult:
    return await run("fetch_url", {"url": site.url + path}, replace(context, web=site.access))


async def test_a_page_starts_with_what_it_is(
    context: ToolContext, serve: Any, reply: Reply
) -> None:
    page = "<title>Jobs</title><h1>Open</h1><p><a href='2'>Senior</a> <script>x</script>"
    site = await serve(reply(page, Content_Type="text/html; charset=utf-8"))
    result = await fetched(context, site, "/jobs/1")
    assert result.content == (
        f"{site.url}/jobs/1 200 text/html\n\nTitle: Jobs\n\n# Open\n\n[Senior]({site.url}/jobs/2)"
    )
    assert result.details == {
        "url": f"{site.url}/jobs/1",
        "status": 200,
        "content_type": "text/html; charset=utf-8",
        "bytes": len(page),
        "hops": [],
        "kept": False,
    }


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", '{"a": [1, 2.50]}'),
        ("application/ld+json", "{}"),
        ("application/vnd.api+json;v=1", "{}"),
        ("text/plain", "a < b &amp; c"),
        ("application/xml", "<a/>"),
        ("application/rss+xml", "<a/>"),
        ("", "guessed to be text"),
    ],
)
async def test_text_of_other_kinds_stays_as_it_is(
    kind: str, body: str, context: ToolContext, serve: Any, reply: Reply
) -> None:
    site = await serve(reply(body, Content_Type=kind))
    result = await fetched(context, site)
    head, _, text = str(result.content).partition("\n\n")
    assert text == body
    assert head.endswith(kind.partition(";")[0].lower() or "no content type")
    assert not result.is_error


@pytest.mark.parametrize("kind", ["application/pdf", "image/png", "application/octet-stream", ""])
async def test_what_cannot_be_read_is_refused_by_name(
    kind: str, context: ToolContext, serve: Any, reply: Reply
) -> None:
    site = await serve(reply(b"\x89PNG\0\0", Content_Type=kind))
    result = await fetched(context, site)
    assert (result.is_error, result.details["code"]) == (True, "body_refused")
    assert f"is {kind or 'binary'} (6 bytes)" in str(result.content)


@pytest.mark.parametrize("status", ["404 Not Found", "500 Oops", "304 Not Modified", "302 Found"])
async def test_no_success_is_an_error_that_shows_why(
    status: str, context: ToolContext, serve: Any, reply: Reply
) -> None:
    body = b"" if status.startswith("304") else b"<p>gone " + b"x" * 9_000
    site = await serve(reply(body, status=status, Content_Type="text/html"))
    result = await fetched(context, site)
    assert result.is_error
    assert result.details["status"] == int(status[:3])
    assert str(result.content).startswith(f"{site.url}/ {status[:3]} text/html")
    assert len(str(result.content)) < 2_100
    assert ("gone" in str(result.content)) == bool(body)


async def test_an_error_with_a_picture_is_only_its_status(
    context: ToolContext, serve: Any, reply: Reply
) -> None:
    site = await serve(reply(b"\x89PNG\0", status="403 No", Content_Type="image/png"))
    assert (await fetched(context, site)).content == f"{site.url}/ 403 image/png"


async def test_an_empty_success_is_its_head_line(
    context: ToolContext, serve: Any, reply: Reply
) -> None:
    site = await serve(reply(b"", status="204 No Content", Content_Type="image/png"))
    result = await fetched(context, site)
    assert (result.content, result.is_error) == (f"{site.url}/ 204 image/png", False)


async def test_a_redirect_is_told(context: ToolContext, serve: Any, reply: Reply) -> None:
    async def respond(path: str, writer: Any) -> None:
        there = reply("there", Content_Type="text/plain")
        writer.write(there if path == "/b" else reply(status="301 Go", Location="/b"))

    site = await serve(respond)
    result = await fetched(context, site, "/a")
    assert result.content == (
        f"{site.url}/b 200 text/plain (redirected from {site.url}/a)\n\nthere"
    )
    assert result.details["hops"] == [f"{site.url}/a"]


async def test_a_refused_address_is_an_error_result(context: ToolContext, canary: Any) -> None:
    result = await run("fetch_url", {"url": f"http://127.0.0.1:{canary.port}/"}, context)
    assert (result.is_error, result.details["code"]) == (True, "address_refused")
    assert canary.connections == 0


async def test_page_text_is_clean_for_every_store(
    context: ToolContext, serve: Any, reply: Reply
) -> None:
    site = await serve(reply(b"a\0b\xed\xa0\x80", Content_Type="text/plain"))
    content = str((await fetched(context, site)).content)
    assert "\0" not in content
    assert content.encode()
