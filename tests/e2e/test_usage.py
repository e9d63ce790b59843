"""The usage page in a browser: its key, its charts, its file, on a wide and a narrow screen."""

from __future__ import annotations

import csv
import re

import pytest
from playwright.async_api import Page, expect

from tests.e2e.conftest import Snap
from tests.e2e.people import ended, set_up, start_chat
from tests.e2e.served import Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]


async def fits(page: Page) -> bool:
    return bool(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


async def test_what_an_answer_cost_is_on_the_usage_page_and_in_the_overview(
    page: Page, served: Served, snap: Snap
) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Hello, what can you do?")
    await ended(page, 1)
    await page.locator("#transcript").focus()
    await page.keyboard.press("g")
    await page.keyboard.press("u")
    await page.wait_for_url("**/usage/")
    await expect(page.get_by_role("heading", name="Usage", exact=True)).to_be_visible()
    await expect(page.locator(".chart-bar").first).to_be_visible()
    await page.get_by_text("As a table").first.click()
    await expect(page.locator(".chart-table table").first).to_be_visible()
    assert await fits(page)
    await snap("usage wide")
    async with page.expect_download() as waiting:
        await page.get_by_role("link", name="Download the calls as CSV").click()
    rows = list(csv.reader((await (await waiting.value).path()).open(encoding="utf-8-sig")))
    assert len(rows) > 1
    await page.set_viewport_size({"width": 390, "height": 844})
    assert await fits(page)
    await page.goto(f"{served.url}/admin/overview/")
    assert await fits(page)
    await page.set_viewport_size({"width": 1280, "height": 860})
    await expect(page.locator(".chart")).to_have_count(4)
    await expect(page.get_by_text(re.compile(r"^Estimate error"))).to_be_visible()
    await snap("overview wide")
