"""What a person does to the context: previewed and applied, left out, reworded, taken back."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, Page, expect

from tests.e2e.conftest import Serve, picture
from tests.e2e.people import ended, log_in, say, set_up, start_chat, turn, upload
from tests.e2e.served import Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
NOTES = "A line of the notes that nobody asks for.\n" * 300 + "The code word is heliotrope.\n"


async def test_a_person_reduces_leaves_out_rewords_and_takes_back(
    browser: Browser, page: Page, serve_app: Serve
) -> None:
    served = serve_app(AGENTWEB_POLICY="classic", AGENTWEB_EMULATOR_DELAY_MS="1")
    await set_up(page, served)
    await upload(page, served, {"notes.txt": NOTES, "more.txt": NOTES})
    await start_chat(page, served, "read notes.txt")
    await ended(page, 1)
    for number, words in enumerate(("read more.txt", "Hello", "What time is it in Tokyo?"), 2):
        await say(page, words)
        await ended(page, number)
    chat = page.url
    await a_result_is_left_out_and_included(page)
    await results_are_reduced_as_previewed(page, chat)
    await a_summary_is_made_edited_and_taken_back(page, chat)
    await the_pages_fit_a_phone(browser, served, chat)
    await page.goto("about:blank")
    assert "0 mismatches" in served.manage("verify")


async def a_result_is_left_out_and_included(page: Page) -> None:
    card = turn(page, 1).locator(".tool", has_text="read_file")
    await card.locator("summary").first.click()
    await card.get_by_role("button", name="Exclude").click()
    await expect(page.locator(".marker", has_text="Left out of the context")).to_be_visible()
    await card.get_by_role("button", name="Include again").click()
    await expect(page.locator(".marker", has_text="Context restored")).to_be_visible()
    await expect(card.get_by_role("button", name="Exclude")).to_be_visible()


async def results_are_reduced_as_previewed(page: Page, chat: str) -> None:
    await page.locator("#meter > summary").click()
    await page.get_by_role("link", name="Reduce…").click()
    await page.wait_for_url("**/compact/preview/")
    await page.get_by_role("link", name="Oldest turns").click()
    await expect(page.locator("h2", has_text="What it costs and saves")).to_be_visible()
    await picture(page, "controls 1 preview", full_page=True)
    digest = await page.locator(".digest").inner_text()
    assert digest.startswith("sha256:")
    await page.get_by_role("button", name="Reduce exactly like this").click()
    await page.wait_for_url("**/inspect/events/**")
    await picture(page, "controls 2 why", full_page=True)
    await page.goto(chat)
    marker = page.locator(".marker", has_text="by hand").last
    await expect(marker).to_be_visible()
    await marker.get_by_role("button", name="Undo").click()
    await expect(page.locator(".marker", has_text="Took back the trim")).to_be_visible()
    await picture(page, "controls 3 markers")


async def a_summary_is_made_edited_and_taken_back(page: Page, chat: str) -> None:
    await page.goto(f"{chat}compact/preview/?want=summary")
    await picture(page, "controls 4 price", full_page=True)
    await page.get_by_role("button", name="Make the summary").click()
    await expect(page.get_by_role("button", name="Apply exactly this")).to_be_visible(
        timeout=60_000
    )
    await picture(page, "controls 5 proposal", full_page=True)
    await page.get_by_role("button", name="Apply exactly this").click()
    await page.wait_for_url("**/inspect/events/**")
    first = page.url
    await page.get_by_text("Edit the words").click()
    field = page.locator("textarea[name=text]")
    await field.fill(await field.input_value() + "\nThe rate is 650.")
    await page.get_by_role("button", name="Keep this version").click()
    await page.wait_for_url(lambda url: "/inspect/events/" in url and url != first)
    await expect(page.locator(".versions li")).to_have_count(2)
    await page.locator(".versions details > summary").last.click()
    await expect(page.locator(".versions ins", has_text="650")).to_be_visible()
    await picture(page, "controls 6 summary", full_page=True)
    await page.get_by_role("button", name="Undo").first.click()
    await page.goto(first)
    await expect(page.get_by_text("Edit the words")).to_be_visible()


async def the_pages_fit_a_phone(browser: Browser, served: Served, chat: str) -> None:
    context = await browser.new_context(
        viewport={"width": 390, "height": 844}, color_scheme="dark", reduced_motion="reduce"
    )
    phone = await context.new_page()
    await log_in(phone, served)
    pages = {
        "preview": f"{chat}compact/preview/?want=results",
        "price": f"{chat}compact/preview/?want=summary",
    }
    await phone.goto(chat)
    marks = phone.locator(".marker a", has_text="What changed")
    pages["summary"] = served.url + str(
        await phone.locator(".marker", has_text="Summarised")
        .last.locator("a")
        .first.get_attribute("href")
    )
    assert await marks.count() > 3
    for name, path in pages.items():
        await phone.goto(path)
        assert await phone.evaluate("document.documentElement.scrollWidth") <= 390
        await picture(phone, f"controls phone {name}", full_page=True)
    await context.close()
