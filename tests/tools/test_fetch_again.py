"""Long pages in ranges, documents, and pages that are requested twice."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from docx import Document
from openpyxl import Workbook

from tools.fetch_url import fetch_url
from tools.framework.tool import ToolContext, ToolResult
from tools.framework.toolset import Toolset
from tools.http.page_cache import PageCache, PageCaches

pytestmark = pytest.mark.asyncio

Reply = Callable[..., bytes]
LATER = timedelta(seconds=61)
run = Toolset({"fetch_url": fetch_url}).run


class Reader:
    """One person who reads one site, at a time that can be moved."""

    def __init__(self, context: ToolContext, site: Any, cache: PageCache | None = None) -> None:
        own = PageCache(1_000_000) if cache is None else cache
        access = replace(site.access, find_pages=lambda: own)
        self.site, self.context = site, replace(context, web=access)

    def wait(self, pause: timedelta) -> None:
        now = self.context.now() + pause
        self.context = replace(self.context, now=lambda: now)

    async def read(self, path: str = "/", **more: Any) -> ToolResult:
        return await run("fetch_url", {"url": self.site.url + path, **more}, self.context)


async def test_a_page_is_read_on_from_the_copy_it_was_begun_with(
    context: ToolContext, serve: Any, reply: Reply
) -> None:
    text = "".join(f"line {number}\n" for number in range(2_000))
    site = await serve(reply(text, Content_Type="text/plain"))
    reader = Reader(context, site)
    whole = text.strip()
    read, start = "", 0
    while start < len(whole):
        content = str((await reader.read(start=start, length=5_000)).content)
        head, _, part = content.partition("]\n\n")
        assert f"[{len(whole):,} characters, showing {start:,} to " in head
        read, start = read + part, start + 5_000
        # The content of a result is stripped, so a line's end may be missing at a border.
        read += "\n" if len(read) < min(start, len(whole)) else ""
        assert (f"continue with start={start}" in head) == (start < len(whole))
    assert read == whole
    assert site.connections == 1


@pytest.mark.parametrize("asked", [{"start": -1}, {"length": -1}, {"start": 4}, {"start": 99}])
async def test_a_part_that_is_not_there_is_said_so(
    asked: dict[str, int], context: ToolContext, serve: Any, reply: Reply
) -> None:
    site = await serve(reply("four", Content_Type="text/plain"))
    result = await Reader(context, site).read(**asked)
    assert result.is_error
    assert result.details["code"] == "bad_input"


async def test_a_fresh_page_is_not_asked_for_again(
    context: ToolContext, serve: Any, reply: Reply
) -> None:
    site = await serve(reply("x", Content_Type="text/plain", Cache_Control="max-age=60"))
    reader = Reader(context, site)
    first, second = await reader.read(), await reader.read()
    assert (first.details["kept"], second.details["kept"]) == (False, True)
    assert "(as read at " in str(second.content)
    assert site.connections == 1
    reader.wait(LATER)
    assert not (await reader.read()).details["kept"]
    assert site.connections == 2


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ({"ETag": '"v1"'}, 'if-none-match: "v1"'),
        (
            {"Last_Modified": "Sun, 22 Nov 2026 11:05:00 GMT"},
            "if-modified-since: sun, 22 nov 2026 11:05:00 gmt",
        ),
    ],
)
async def test_an_unchanged_page_is_confirmed_and_not_loaded(
    said: dict[str, str], asked: str, context: ToolContext, serve: Any, reply: Reply
) -> None:
    async def respond(_path: str, writer: asyncio.StreamWriter) -> None:
        is_second = asked in site.heads[-1].lower()
        writer.write(reply(status="304 Same") if is_second else reply("one", **said))

    site = await serve(respond)
    reader = Reader(context, site)
    assert not (await reader.read()).details["kept"]
    for _ in range(2):
        result = await reader.read()
        assert str(result.content).endswith("\n\none")
        assert (result.is_error, result.details["kept"]) == (False, True)
    assert site.connections == 3
    assert asked not in site.heads[0].lower()


async def test_a_changed_page_takes_the_place_of_the_old_one(
    context: ToolContext, serve: Any, reply: Reply
) -> None:
    async def respond(_path: str, writer: asyncio.StreamWriter) -> None:
        writer.write(reply(f"version {len(site.heads)}", ETag=f'"{len(site.heads)}"'))

    site = await serve(respond)
    reader = Reader(context, site)
    await reader.read()
    assert str((await reader.read()).content).endswith("version 2")
    await reader.read()
    assert 'if-none-match: "2"' in site.heads[2].lower()


async def test_what_may_not_be_stored_is_loaded_each_time(
    context: ToolContext, serve: Any, reply: Reply
) -> None:
    site = await serve(reply("x" * 50, Cache_Control="no-store", ETag='"1"'))
    reader = Reader(context, site)
    for start in (0, 20, 40):
        await reader.read(start=start, length=20)
    assert site.connections == 3
    assert not any("if-none-match" in head.lower() for head in site.heads)


async def test_one_person_never_gets_the_copy_of_another(
    context: ToolContext, serve: Any, reply: Reply
) -> None:
    site = await serve(reply("mine", Content_Type="text/plain", Cache_Control="max-age=60"))
    shelves = PageCaches()
    for person in ("1", "2"):
        reader = Reader(context, site, shelves.of(person, 1_000_000))
        assert not (await reader.read()).details["kept"]
    assert site.connections == 2


async def test_a_redirect_that_answers_not_modified_is_asked_without_conditions(
    context: ToolContext, serve: Any, reply: Reply
) -> None:
    async def respond(path: str, writer: asyncio.StreamWriter) -> None:
        is_first = len(site.heads) == 1
        if path == "/" and is_first:
            writer.write(reply("old", ETag='"1"'))
        elif path == "/":
            writer.write(reply(status="302 Go", Location="/new"))
        else:
            is_asked = "if-none-match" in site.heads[-1].lower()
            writer.write(reply(status="304 Same") if is_asked else reply("new"))

    site = await serve(respond)
    reader = Reader(context, site)
    await reader.read()
    assert str((await reader.read()).content).endswith("\n\nnew")


async def test_a_document_is_read_as_its_text(
    context: ToolContext, serve: Any, reply: Reply
) -> None:
    document, book = Document(), Workbook()
    document.add_paragraph("An offer for Ada")
    sheet = book.active
    assert sheet is not None
    sheet.append(["Item", "Price"])
    sheet.append(["Tea", 3])
    files: dict[str, bytes] = {"/table.csv": b"Item,Price\nTea,3\n"}
    for path, save in (("/offer.docx", document.save), ("/prices.xlsx", book.save)):
        made = io.BytesIO()
        save(made)
        files[path] = made.getvalue()

    async def respond(path: str, writer: asyncio.StreamWriter) -> None:
        kind = "text/csv" if path.endswith("csv") else "application/octet-stream"
        writer.write(reply(files[path], Content_Type=kind))

    reader = Reader(context, await serve(respond))
    assert "An offer for Ada" in str((await reader.read("/offer.docx")).content)
    assert "| Tea | 3 |" in str((await reader.read("/prices.xlsx")).content)
    assert "| Tea | 3 |" in str((await reader.read("/table.csv")).content)


async def test_a_page_that_says_nothing_of_its_kind_is_read_as_what_it_is(
    context: ToolContext, serve: Any, reply: Reply
) -> None:
    site = await serve(reply("<!-- x -->\n<!DOCTYPE html><title>T</title><p>said"))
    content = str((await Reader(context, site).read()).content)
    assert content.endswith("no content type\n\nTitle: T\n\nsaid")


async def test_a_page_says_when_it_was_published_and_its_own_address(
    context: ToolContext, serve: Any, reply: Reply
) -> None:
    page = (
        '<title>News</title><meta property="article:published_time" content="2026-11-20T08:00Z">'
        '<link rel="canonical" href="/news/1"><p>text <a href="#top">up</a>'
    )
    site = await serve(reply(page, Content_Type="text/html"))
    content = str((await Reader(context, site).read("/news/1?utm=x")).content)
    assert content.split("\n\n", 1)[1] == (
        f"Title: News\nPublished: 2026-11-20T08:00Z\nCanonical: {site.url}/news/1\n\ntext up"
    )


@pytest.mark.parametrize(
    ("url", "destination"),
    [
        ("https://Example.com/a?b", "example.com:443"),
        ("http://example.com.:8080/", "example.com:8080"),
        ("http://[2606:4700::1]/", "[2606:4700::1]:80"),
        ("not a url\\", ""),
    ],
)
async def test_who_is_told_something_is_the_host_and_its_port(url: str, destination: str) -> None:
    assert fetch_url.destination is not None
    assert fetch_url.destination({"url": url}) == destination
