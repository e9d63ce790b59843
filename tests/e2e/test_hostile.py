"""Whatever a model, a tool, a file, a title or an import says is text: nothing of it acts.

One app, every payload in each place through the way it really comes; a canary hears requests to
elsewhere, dialogs, refusals of the page's policy and what the page holds that could act.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from urllib.parse import quote

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from agentweb.emulator import server
from agentweb.emulator.scenes.background import wants_title
from agentweb.emulator.scenes.scene import Reply
from agentweb.emulator.scenes.scene import say as reply
from agentweb.emulator.scenes.view import Request
from agentweb.emulator.script import Script, after, always, call, say, summary, think, when
from agentweb.emulator.server import EmulatorServer
from tests.e2e.conftest import Serve
from tests.e2e.hostile import HOSTILE, LINE, MARK, MARKUP, NAME, TYPED, Canary
from tests.e2e.people import ended, set_up
from tests.e2e.people import say as send
from tests.e2e.served import Served
from tests.support.paying_summaries import SUMMARY_PAYS

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]


def titled(request: Request) -> Reply | None:
    return reply(LINE) if wants_title(request) else None


SCRIPT = Script(
    [
        titled,
        summary(say(f"## Goal\n{HOSTILE}\n## Done\n{HOSTILE[:2_000]}\n## Next\nGo on.\n")),
        when("write it", think(HOSTILE), call("write_file", path=NAME, content=HOSTILE)),
        after("write_file", call("read_file", path=NAME), call("read_file", path=f"{LINE}/none")),
        after("read_file", say(HOSTILE)),
        always(think(HOSTILE[:500]), say(f"{HOSTILE}\n\n{MARK}")),
    ]
)


@pytest.fixture
def api() -> Iterator[EmulatorServer]:
    with server.start(pace=0, script=SCRIPT) as running:
        yield running


@pytest.fixture
def served(serve_app: Serve, api: EmulatorServer) -> Served:
    return serve_app(
        ANTHROPIC_API_KEY="sk-hostile",
        ANTHROPIC_BASE_URL=api.url,
        AGENTWEB_POLICY="classic",
        AGENTWEB_PROTECTED_TAIL_MESSAGES="2",
        **SUMMARY_PAYS,
        AGENTWEB_INPUT_TOKEN_BUDGET="12000",
        AGENTWEB_COMPACTION_THRESHOLD_TOKENS="20000",
    )


@pytest.fixture
def canary(served: Served) -> Canary:
    return Canary(served.url)


@pytest_asyncio.fixture(loop_scope="session")
async def tab(browser: Browser, canary: Canary, served: Served) -> AsyncIterator[Page]:
    context = await browser.new_context(
        reduced_motion="reduce", locale="en-GB", service_workers="block"
    )
    context.set_default_timeout(60_000)
    await canary.watch(context)
    page = await context.new_page()
    await set_up(page, served)
    yield page
    await context.close()


async def test_nothing_that_was_said_acts(tab: Page, served: Served, canary: Canary) -> None:
    address = await _a_talk_where_everything_is_hostile(tab, canary)
    await _it_is_the_same_after_a_reload(tab, canary)
    await _every_page_about_it_is_text(tab, served, canary, address)
    await _its_export_is_text(tab, served, canary, address)
    await _an_import_of_it_is_text(tab, served, canary)
    await _the_review_is_text(tab, served, canary)
    assert canary.found + canary.seen == []
    assert canary.pages > 15
    await _the_canary_hears(tab, served, canary)


async def _a_talk_where_everything_is_hostile(tab: Page, canary: Canary) -> str:
    await tab.fill("textarea[name=text]", f"write it {LINE}\n{TYPED}")
    await tab.locator("#composer").evaluate("form => form.requestSubmit()")
    await tab.wait_for_url(re.compile(r"/c/[0-9a-f-]{36}/"))
    await ended(tab, 1)
    shown = await canary.look(tab, "the first turn, as it streamed")
    for text in ("<script>alert(1)</script>", "onerror=alert(1)", "hx-get", "javascript:alert"):
        assert text in shown
    for at in range(2, 7):
        await tab.fill("textarea[name=text]", f"again {at} {TYPED}")
        await tab.locator("#composer").evaluate("form => form.requestSubmit()")
        await ended(tab, at)
    assert shown.count(MARK) > 3
    await expect(tab.locator(".marker").first).to_be_attached()
    await canary.look(tab, "after a summary")
    return tab.url


async def _it_is_the_same_after_a_reload(tab: Page, canary: Canary) -> None:
    await tab.reload()
    shown = await canary.look(tab, "reloaded")
    assert "\x00" not in shown
    assert await tab.evaluate("document.querySelectorAll('#live, #words, #composer').length") == 3
    links = await tab.locator(".prose a").evaluate_all("all => all.map(one => one.href)")
    assert links
    assert all(re.match(r"https?://|mailto:", link) for link in links)
    hosts = await tab.locator(".prose .host").all_inner_texts()
    assert {"evil.example", "pаypal.com"} & set(hosts)


async def _every_page_about_it_is_text(
    tab: Page, served: Served, canary: Canary, address: str
) -> None:
    pages = await _links(tab, rf"^{address}(inspect|tools|settings|lab|compact|menu)")
    assert any("/inspect/" in page for page in pages)
    for page in pages[:12]:
        await tab.goto(page)
        await canary.look(tab, page)
    await tab.goto(f"{address}menu/")
    await tab.fill("#menu-text", LINE)
    await tab.get_by_role("button", name="Rename").click()
    await expect(tab.locator("#notice")).to_contain_text("Renamed")
    await canary.look(tab, "renamed by a person")
    for path in (
        "/search/?q=onerror",
        f"/search/?q={quote(LINE)}",
        "/c/list/",
        "/usage/",
        "/files/",
        "/files/attached/",
    ):
        await tab.goto(served.url + path)
        await canary.look(tab, path)
    await tab.goto(f"{served.url}/search/?q=onerror")
    await expect(tab.locator(".hits li").first).to_contain_text("onerror")


async def _links(tab: Page, pattern: str) -> list[str]:
    found = await tab.locator("a[href]").evaluate_all("all => all.map(one => one.href)")
    return list(dict.fromkeys(link.partition("#")[0] for link in found if re.match(pattern, link)))


async def _its_export_is_text(tab: Page, served: Served, canary: Canary, address: str) -> None:
    """Also where it is opened: as a page of its own, with no policy but the one inside it."""
    answer = await tab.context.request.get(f"{address}export.html")
    assert answer.headers["content-disposition"].startswith("attachment")
    body = await answer.body()

    async def show(route: object) -> None:
        await route.fulfill(body=body, content_type="text/html")  # type: ignore[attr-defined]

    await tab.route("**/exported.html", show)
    await tab.goto(f"{served.url}/exported.html")
    shown = await canary.look(tab, "export")
    assert "<script>alert(1)</script>" in shown
    assert await tab.evaluate("document.scripts.length") == 0
    await tab.goto("about:blank")


async def _an_import_of_it_is_text(tab: Page, served: Served, canary: Canary) -> None:
    uses = [{"type": "tool_use", "id": "toolu_x", "name": "evil", "input": {LINE: HOSTILE}}]
    result = {"type": "tool_result", "tool_use_id": "toolu_x", "content": HOSTILE, "is_error": True}
    image = {
        "type": "image",
        "source": {
            "type": "base64",
            "media_type": "image/svg+xml",
            "data": "PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+",
        },
    }
    record = {
        "id": LINE[:100],
        "title": LINE,
        "system": HOSTILE,
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": HOSTILE}, image]},
            {"role": "assistant", "content": uses},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": HOSTILE},
        ],
    }  # fmt: skip
    file = {
        "name": NAME,
        "mimeType": "application/json",
        "buffer": json.dumps([record, {"title": LINE}]).encode(),
    }
    await tab.goto(f"{served.url}/settings/data/")
    await tab.set_input_files("[name=file]", file)  # type: ignore[arg-type]
    await tab.get_by_role("button", name="Import", exact=True).click()
    await expect(tab.locator(".report")).to_contain_text("imported")
    await canary.look(tab, "the report of an import")
    await tab.locator(".report a").first.click()
    await tab.wait_for_url(re.compile(r"/c/[0-9a-f-]{36}/"))
    shown = await canary.look(tab, "an imported conversation")
    assert "onerror=alert(1)" in shown
    assert shown.count(MARK) > 3
    await send(tab, "go on")
    section = await ended(tab, 2)
    await canary.look(tab, "an imported conversation that went on")
    assert MARK in await section.locator(".prose").first.inner_text()


async def _the_review_is_text(tab: Page, served: Served, canary: Canary) -> None:
    """The pages of the staff: lists and every kind of detail."""
    kinds = ("conversation", "turn", "apicall", "transformation", "toolcall")
    for kind in kinds:
        await tab.goto(f"{served.url}/admin/conversations/{kind}/")
        await canary.look(tab, f"review: list of {kind}")
        own = rf"^{served.url}/admin/conversations/{kind}/\d+/change/"
        for page in (await _links(tab, own))[-3:]:
            await tab.goto(page)
            await canary.look(tab, f"review: {kind} {page}")
            within = rf"^{served.url}/admin/conversations/{kind}/\d+/(?!change|history|delete)"
            for inner in (await _links(tab, within))[:3]:
                await tab.goto(inner)
                await canary.look(tab, f"review: {kind} {inner}")
    await tab.goto(f"{served.url}/admin/conversations/conversation/?q={quote(LINE)}")
    await canary.look(tab, "review: search")


async def _the_canary_hears(tab: Page, served: Served, canary: Canary) -> None:
    """The same payloads in a page that lets them act: what was silent above is not deaf."""

    async def show(route: object) -> None:
        still = "".join(text for text in MARKUP if "refresh" not in text)
        bare = f"<p id=live></p><pre>{still}</pre>"
        await route.fulfill(body=bare, content_type="text/html")  # type: ignore[attr-defined]

    await tab.route("**/acting.html", show)
    await tab.goto(f"{served.url}/acting.html", wait_until="commit")
    signs = ("alert", "request http://evil.example/x.js", "img onerror", "in a text: id")
    async with asyncio.timeout(60):
        while not all(sign in " ".join(canary.found) for sign in signs):
            await tab.wait_for_timeout(100)
            await canary.look(tab, "acting")
