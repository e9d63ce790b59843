"""Other answers and other words beside the first ones, messages that wait, and two tabs."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.e2e.conftest import Serve, Watch, observe, picture
from tests.e2e.people import ended, say, set_up, start_chat, turn
from tests.e2e.served import Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]


async def tab(page: Page, watch: Watch) -> Page:
    other = await page.context.new_page()
    observe(other, watch)
    await other.goto(page.url)
    return other


async def shows(page: Page, *numbers: int) -> None:
    await expect(page.locator(".turn")).to_have_count(len(numbers))
    for number in numbers:
        await expect(turn(page, number)).to_have_count(1)


async def test_versions_are_made_and_chosen_by_keys_and_every_tab_follows(
    page: Page, serve_app: Serve, watch: Watch
) -> None:
    served = serve_app(AGENTWEB_EMULATOR_DELAY_MS="1")
    await set_up(page, served)
    await start_chat(page, served, "Hello there")
    await ended(page, 1)
    await say(page, "What time is it in Tokyo?")
    await ended(page, 2)
    other = await tab(page, watch)
    # Another answer, and back to the first one without the mouse.
    await turn(page, 2).get_by_role("button", name="Regenerate").click()
    await ended(page, 3)
    await shows(page, 1, 3)
    await shows(other, 1, 3)
    await page.keyboard.press("[")
    await shows(page, 1, 2)
    await shows(other, 1, 2)
    await expect(page.locator("#announcer")).to_have_text("Version 1 of 2")
    await turn(page, 2).get_by_role("button", name="Next version").click()
    await shows(other, 1, 3)
    await expect(page.locator("#v1-previous")).to_be_focused()
    # Other words for the last message; what is typed elsewhere meanwhile stays.
    await turn(other, 1).locator(".prompt").hover()
    await turn(other, 1).get_by_role("link", name="Edit").click()
    await other.locator("#edit-1").fill("Typed and not sent yet")
    await page.locator("#text").focus()
    await page.keyboard.press("ArrowUp")
    await expect(page.locator("#edit-3")).to_be_focused()
    await page.locator("#edit-3").fill("What time is it in Lima?")
    await picture(page, "branches 1 editor")
    await page.keyboard.press("Control+Enter")
    await ended(page, 4)
    await shows(page, 1, 4)
    await expect(page.locator("#turn-4-answer")).to_be_focused()
    await shows(other, 1, 4)
    await expect(other.locator("#edit-1")).to_have_value("Typed and not sent yet")
    await picture(page, "branches 2 versions")
    # A whole other way from the first message on, by the editor of the other tab.
    await other.get_by_role("button", name="Send", exact=True).first.click()
    await ended(page, 5)
    await shows(page, 5)
    await page.reload()
    await shows(page, 5)
    await page.keyboard.press("k")
    await page.keyboard.press("[")
    await shows(page, 1, 4)
    await shows(other, 1, 4)
    await page.goto("about:blank")
    await other.goto("about:blank")
    assert "0 mismatches" in served.manage("verify")


async def test_messages_under_an_answer_wait_in_both_tabs_and_go_when_they_should(
    page: Page, served: Served, watch: Watch
) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Answer in 4000 words")
    other = await tab(page, watch)
    await expect(turn(page, 1).locator(".prose").first).not_to_be_empty(timeout=60_000)
    await say(other, "Hello again")
    await say(other, "List my files")
    for one in (page, other):
        await expect(one.locator(".queue li")).to_have_count(2)
    await page.locator("#text").fill("And")
    await picture(page, "branches 3 queue")
    await page.locator(".queue li").last.get_by_role("button", name="Edit").click()
    await expect(page.locator("#text")).to_have_value("List my files\n\nAnd")
    await page.locator("#text").fill("")
    # Stopped: what waits does so until somebody says when.
    await page.keyboard.press("Escape")
    await expect(await ended(page, 1)).to_contain_text("Stopped")
    await expect(other.locator(".queue")).to_contain_text("was not finished")
    await other.get_by_role("button", name="Send now").click()
    await ended(page, 2)
    for one in (page, other):
        await expect(one.locator(".queue")).to_have_count(0)
        await shows(one, 1, 2)
    await expect(turn(page, 2)).to_contain_text("Hello again")
