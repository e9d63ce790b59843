"""The installed app in a real browser: what it keeps, and what it shows without a server."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.e2e import served as app
from tests.e2e.people import ended, set_up, start_chat

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
STORED = """async () => {
  const found = await Promise.all((await caches.keys()).map(async (name) =>
    (await (await caches.open(name)).keys()).map(({ url }) => new URL(url).pathname)));
  return found.flat().sort();
}"""
PUBLIC = ["/offline/", "/static/agentweb.css", "/static/agentweb.svg", "/static/offline.js"]


async def test_without_a_server_one_page_of_nobodys_is_shown_until_it_is_back(
    browser: Browser, tmp_path: Path
) -> None:
    served = app.fork(tmp_path / "data", AGENTWEB_TITLE_MODEL="off")
    context = await browser.new_context(locale="de-DE", reduced_motion="reduce")
    context.set_default_timeout(60_000)
    try:
        page = await context.new_page()
        await set_up(page, served)
        await start_chat(page, served, "A private word: amaryllis")
        await ended(page, 1)
        await page.evaluate("() => navigator.serviceWorker.ready.then(() => null)")
        assert await page.evaluate(STORED) == PUBLIC
        kept = await page.evaluate("caches.match('/offline/').then((page) => page.text())")
        assert "amaryllis" not in kept
        assert "csrf" not in kept.lower()
        tools = await context.new_cdp_session(page)
        faults = (await tools.send("Page.getInstallabilityErrors"))["installabilityErrors"]
        assert [each["errorId"] for each in faults if each["errorId"] != "in-incognito"] == []
        served.stop()
        await page.reload()
        await expect(page.locator("h1")).to_have_text("Der Server ist nicht erreichbar")
        assert await page.evaluate("getComputedStyle(document.body).display") == "flex"
        served = app.fork(tmp_path / "data", served.port, AGENTWEB_TITLE_MODEL="off")
        await expect(page.locator("#transcript")).to_contain_text("amaryllis")
        assert await page.evaluate(STORED) == PUBLIC
    finally:
        await context.close()
        served.stop()
