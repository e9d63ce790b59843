"""What people do with an answer every day: look into it, go on with it, take it elsewhere."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.e2e.people import CHAT, ended, set_up, start_chat, turn
from tests.e2e.served import Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]


async def test_a_cut_answer_goes_on_and_a_fork_says_that_it_is_one(
    page: Page, served: Served
) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Hello emulator:fault=max_tokens")
    section = await ended(page, 1)
    thinking = section.locator("details.thinking").first
    await expect(thinking.locator(".thought")).to_be_hidden()
    await thinking.locator("summary").click()
    await expect(thinking.locator(".thought")).not_to_be_empty()
    await expect(thinking.locator(".thought")).to_be_visible()
    await section.get_by_role("button", name="Continue").click()
    section = await ended(page, 2)
    await expect(section.locator(".continued")).to_have_text("Continued")
    title, address = await page.locator("#title").inner_text(), page.url
    await section.get_by_role("button", name="Fork").click()
    await page.wait_for_url(lambda url: bool(CHAT.search(url)) and url != address)
    await expect(turn(page, 2)).to_be_visible()
    await expect(page.locator("#title")).to_have_text(f"{title} (fork)")


async def test_a_temporary_chat_is_in_no_list(page: Page, served: Served) -> None:
    await set_up(page, served)
    await page.get_by_role("link", name="Temporary").click()
    await expect(page.locator("#temporary")).to_contain_text("in no list and no search")
    await page.fill("textarea[name=text]", "Hello pistachio")
    await page.keyboard.press("Enter")
    await page.wait_for_url(CHAT)
    await ended(page, 1)
    await expect(page.locator("#temporary")).to_contain_text("Erased:")
    await page.goto(f"{served.url}/search/?q=pistachio")
    await expect(page.locator("#found")).to_contain_text("Nothing was found")
    await expect(page.locator("#rows")).not_to_contain_text("pistachio")
