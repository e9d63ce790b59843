"""The message box of a new chat: what a draft keeps, and what Enter does where."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from playwright.async_api import Browser, Page, expect

from tests.e2e.conftest import Serve
from tests.e2e.people import CHAT, NAME, ended, set_up, start_chat
from tests.e2e.served import Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]


async def test_a_draft_keeps_its_model_and_its_effort(tab: Page, served: Served) -> None:
    await tab.goto(f"{served.url}/c/new/")
    model, effort = tab.locator("#model-menu > summary"), tab.locator("#effort-menu > summary")
    await tab.fill("#text", "A long draft")
    await model.click()
    await tab.get_by_role("radio", name="Opus 4.6").check()
    await expect(model).to_contain_text("Opus 4.6")
    await tab.keyboard.press("Escape")
    await effort.click()
    await tab.get_by_role("radio", name="Low").check()
    await expect(effort).to_contain_text("Low")
    await tab.keyboard.press("Escape")
    await tab.get_by_role("link", name="Temporary chat").click()
    await tab.wait_for_url("**/c/new/?temporary=1")
    await expect(model).to_contain_text("Opus 4.6")
    await expect(effort).to_contain_text("Low")
    await expect(tab.locator("#text")).to_have_value("A long draft")
    await tab.reload()
    await expect(model).to_contain_text("Opus 4.6")
    await expect(effort).to_contain_text("Low")
    # The next chat has the usual ones.
    await tab.fill("#text", "")
    await tab.reload()
    await expect(model).not_to_contain_text("Opus 4.6")


async def test_no_example_takes_the_place_of_a_draft(tab: Page, served: Served) -> None:
    await tab.goto(f"{served.url}/c/new/")
    example = tab.locator(".examples a").first
    await expect(example).to_be_visible()
    words = await example.inner_text()
    await tab.fill("#text", "A draft")
    await expect(example).to_be_hidden()
    await tab.fill("#text", "")
    await example.click()
    await expect(tab.locator("#text")).to_have_value(words)


async def expect_keys(page: Page, served: Served, *rows: str) -> None:
    """Expect these to be the first rows of the list of keys."""
    await page.goto(f"{served.url}/settings/shortcuts/")
    shown = page.locator(".keys > div:visible")
    for at, row in enumerate(rows):
        await expect(shown.nth(at)).to_have_text(row)


async def test_enter_begins_a_line_on_a_touch_screen(
    browser: Browser, tab: Page, served: Served
) -> None:
    await tab.goto(f"{served.url}/c/new/")
    await expect(tab.locator("#text")).to_have_attribute("enterkeyhint", "send")
    await expect_keys(tab, served, "Enter Send", "Shift Enter New line")
    context = await browser.new_context(
        viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True, locale="en-GB",
        reduced_motion="reduce",
    )  # fmt: skip
    phone = await context.new_page()
    try:
        await set_up(phone, served)
        box = phone.locator("#text")
        await expect(box).to_have_attribute("enterkeyhint", "enter")
        await box.fill("Dear Anna,")
        await box.press("Enter")
        await box.press_sequentially("how are you?")
        await expect(box).to_have_value("Dear Anna,\nhow are you?")
        await phone.locator("#send").tap()
        await phone.wait_for_url(CHAT)
        await expect(await ended(phone, 1)).to_contain_text("how are you?")
        await expect_keys(phone, served, "Ctrl/⌘ Enter Send", "Enter New line")
        # Who chose that Enter sends is not asked what the screen is.
        await phone.goto(f"{served.url}/settings/chat/")
        await phone.get_by_label("sends; Shift+Enter begins a line").check()
        async with phone.expect_navigation():
            await phone.get_by_role("button", name="Save").click()
        await expect_keys(phone, served, "Enter Send", "Shift Enter New line")
        await phone.goto(f"{served.url}/c/new/")
        await expect(box).to_have_attribute("enterkeyhint", "send")
        await box.fill("Hello")
        await box.press("Enter")
        await phone.wait_for_url(CHAT)
    finally:
        await phone.goto(f"{served.url}/settings/chat/")
        await phone.get_by_label("sends, but begins a line on a touch screen").check()
        async with phone.expect_navigation():
            await phone.get_by_role("button", name="Save").click()
        await context.close()


async def test_who_begins_a_chat_writes_on_without_a_click(tab: Page, served: Served) -> None:
    await tab.goto(f"{served.url}/c/new/")
    await tab.keyboard.type("Hello")
    await tab.keyboard.press("Enter")
    await tab.wait_for_url(CHAT)
    await expect(tab.locator("#text")).to_be_focused()
    await tab.keyboard.type("And another thing")
    await expect(tab.locator("#text")).to_have_value("And another thing")
    await ended(tab, 1)
    await expect(tab.locator("#text")).to_be_focused()
    # Who opens a chat has its single keys.
    await tab.reload()
    await expect(tab.locator("#text")).not_to_be_focused()


async def test_the_row_below_the_message_cuts_nothing_short(page: Page, serve_app: Serve) -> None:
    served = serve_app()
    await set_up(page, served)
    served.manage("budgets", "set", "--user", NAME, "1.00")
    await start_chat(page, served, "Answer in 300 words")
    await ended(page, 1)
    with closing(sqlite3.connect(served.database, timeout=60)) as database, database:
        database.execute("UPDATE conversations_budgetwindow SET spent = 985000")
    await page.reload()
    budget = page.locator("#budget")
    await expect(budget).to_contain_text("Only")
    cut = """() => [...document.querySelectorAll(
      ".composer-row :is(.chooser-name, .budget, .budget .label)")]
      .filter((node) => node.scrollWidth > node.clientWidth + 1).map((node) => node.innerText)"""
    await expect(page.locator(".composer .gauge")).to_be_visible()
    assert await page.evaluate(cut) == []
    await page.get_by_role("link", name="Context inspector").first.click()
    await expect(page.locator("#inspector .makeup-bar")).to_be_visible()
    assert await page.evaluate(cut) == []
    # What made room stands in the panel.
    await page.locator("#meter > summary").click()
    await expect(page.locator("#meter .panel")).to_contain_text("This chat: $")
    await expect(page.locator("#meter .makeup-bar")).to_be_visible()
