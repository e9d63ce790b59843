"""A search of the web in a browser: turned on by the person, a card, sources under the answer."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.e2e.conftest import Snap
from tests.e2e.people import ended, say, set_up, start_chat
from tests.e2e.served import Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]


async def fits(page: Page) -> bool:
    return bool(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


async def test_a_person_turns_search_on_and_reads_what_an_answer_cites(
    page: Page, served: Served, snap: Snap
) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Search the web for black tea")
    first = await ended(page, 1)
    await expect(first.locator(".sources")).to_have_count(0)
    chat = page.url
    await page.goto(f"{chat}tools/")
    await page.get_by_text("On, and nothing private is read in this chat").click()
    await snap("tools with search")
    await page.set_viewport_size({"width": 390, "height": 844})
    assert await fits(page)
    await snap("tools with search phone")
    await page.set_viewport_size({"width": 1280, "height": 860})
    await page.get_by_role("button", name="Save").click()
    await page.wait_for_url(chat)
    await say(page, "Search the web 2 times for green tea")
    second = await ended(page, 2)
    source = second.locator(".sources a")
    await expect(source).to_have_attribute("href", "https://pages.example/green-tea-2")
    await expect(source).to_have_attribute("rel", "noopener noreferrer nofollow")
    await second.locator("details.tools summary").first.click()
    await second.locator("details.tool summary").first.click()
    await expect(second.locator("details.tool pre").last).to_be_attached()
    await snap("search answer")
    await page.emulate_media(color_scheme="dark")
    await page.set_viewport_size({"width": 390, "height": 844})
    assert await fits(page)
    await snap("search answer phone dark")
