"""What was compacted is put back by its marker, taken back, pinned, and tried otherwise."""

from __future__ import annotations

import sqlite3

import pytest
from playwright.async_api import Browser, Page, expect

from tests.e2e.conftest import Serve, Watch, picture
from tests.e2e.people import ended, log_in, say, set_up, start_chat, turn, upload
from tests.e2e.served import Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
#: Longer than what is kept verbatim anyway.
NOTES = "A line of the notes that nobody asks for.\n" * 300 + "The code word is heliotrope.\n"


def changes(served: Served) -> list[str]:
    database = sqlite3.connect(f"file:{served.database}?mode=ro", uri=True)
    try:
        found = database.execute("SELECT kind FROM conversations_transformation ORDER BY seq")
        return [str(kind) for (kind,) in found if kind != "rebind"]
    finally:
        database.close()


async def test_a_result_is_restored_undone_and_pinned(page: Page, serve_app: Serve) -> None:
    served = serve_app(
        AGENTWEB_POLICY="classic",
        AGENTWEB_INPUT_TOKEN_BUDGET="3000",
        AGENTWEB_COMPACTION_THRESHOLD_TOKENS="1000000",
        AGENTWEB_EMULATOR_DELAY_MS="1",
    )
    await set_up(page, served)
    await upload(page, served, {"notes.txt": NOTES})
    await start_chat(page, served, "read notes.txt")
    await ended(page, 1)
    await say(page, "What time is it in Tokyo?")
    await ended(page, 2)
    await say(page, "Hello")
    await ended(page, 3)
    assert changes(served) == ["compaction"]
    marker = page.locator(".marker", has_text="Compacted")
    await marker.get_by_role("button", name="Send in full next time").click()
    restored = page.locator(".marker", has_text="Context restored")
    await expect(restored).to_be_visible()
    card = turn(page, 1).locator(".tool", has_text="read_file")
    await page.reload()
    await expect(card.locator(".pin-mark")).to_be_visible()
    await restored.get_by_role("button", name="Undo").click()
    await expect(page.locator(".marker", has_text="Took back")).to_be_visible()
    await page.reload()
    await expect(card.locator(".pin-mark")).to_be_hidden()
    await card.locator("summary").first.click()
    await card.get_by_role("button", name="Pin").click()
    await expect(card.locator(".pin-mark")).to_be_visible()
    await expect(card.get_by_role("button", name="Pinned")).to_have_attribute(
        "aria-pressed", "true"
    )
    assert changes(served) == ["compaction", "restore", "restore", "restore"]
    await picture(page, "pins 1 transcript")
    await say(page, "Hello again")
    await ended(page, 4)
    await say(page, "What time is it in Lima?")
    await ended(page, 5)
    assert changes(served) == ["compaction", "restore", "restore", "restore"]
    chat = page.url
    await the_original_is_sent_in_full(page)
    await page.goto(chat)
    await the_lab_compares_the_policies(page)
    await page.goto("about:blank")
    assert "0 mismatches" in served.manage("verify")


async def the_original_is_sent_in_full(page: Page) -> None:
    await page.locator(".marker a", has_text="What changed").first.click()
    await page.wait_for_url("**/inspect/events/**")
    await picture(page, "pins 2 reduction", full_page=True)
    await page.get_by_role("link", name="Original").first.click()
    await expect(page.locator("main")).to_contain_text("sent to the model in full")
    await expect(page.locator("main")).to_contain_text("heliotrope")
    await page.get_by_role("button", name="Pinned").click()
    await expect(page.get_by_role("button", name="Pin", exact=True)).to_be_visible()


async def the_lab_compares_the_policies(page: Page) -> None:
    await page.locator("#meter > summary").click()
    await page.get_by_role("link", name="What would another policy have done?").click()
    await page.get_by_role("button", name="Compute").click()
    await expect(page.get_by_role("button", name="Compute again")).to_be_visible(timeout=60_000)
    await expect(page.locator(".trial thead")).to_contain_text("what happened")
    await expect(page.locator(".trial thead")).to_contain_text("Small budget")
    await picture(page, "pins 3 lab", full_page=True)


async def test_settings_are_chosen_and_refused_at_their_field(
    browser: Browser, page: Page, served: Served, watch: Watch
) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Hello")
    await ended(page, 1)
    await page.get_by_role("link", name="Settings of this chat").click()
    await page.locator("summary", has_text="Advanced").click()
    await page.fill("[name=low_water_percent]", "90")
    await page.get_by_role("button", name="Save").click()
    field = page.locator(".field.is-wrong")
    await expect(field).to_contain_text("Must be below compact_above_percent")
    await picture(page, "settings refused", full_page=True)
    watch.errors.clear()  # the refusal has its status
    await page.fill("[name=low_water_percent]", "")
    await page.select_option("[name=preset]", "classic")
    await page.fill("[name=instructions]", "Answer in one line.")
    await page.get_by_role("button", name="Save").click()
    await page.wait_for_url("**/c/*/")
    await say(page, "Hello again")
    await ended(page, 2)
    settings = await page.get_by_role("link", name="Settings of this chat").get_attribute("href")
    await page.goto(served.url + str(settings))
    await expect(page.locator("[name=preset]")).to_have_value("classic")
    context = await browser.new_context(
        viewport={"width": 390, "height": 844}, color_scheme="dark", reduced_motion="reduce"
    )
    phone = await context.new_page()
    await log_in(phone, served)
    for path in (settings, str(settings).replace("settings", "lab")):
        await phone.goto(served.url + str(path))
        assert await phone.evaluate("document.documentElement.scrollWidth") <= 390
        name = f"phone dark {str(path).rstrip('/').rpartition('/')[2]}"
        await picture(phone, name, full_page=True)
    await context.close()
