"""The clicks of the meter: compact now, in full this once, always in full."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.e2e.conftest import Serve, picture
from tests.e2e.people import ended, say, set_up, start_chat, upload

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
NOTES = "A line of the notes that nobody asks for.\n" * 600


async def test_each_is_one_click_and_is_shown(page: Page, serve_app: Serve) -> None:
    served = serve_app(AGENTWEB_EMULATOR_DELAY_MS="1")
    await set_up(page, served)
    await upload(page, served, {"notes.txt": NOTES})
    await start_chat(page, served, "read notes.txt")
    await ended(page, 1)
    await say(page, "read notes.txt")
    await ended(page, 2)
    price = page.locator("#next-price")
    await expect(price).to_contain_text("The next message costs about $0.")
    meter = page.locator("#meter")
    await meter.locator("summary").first.click()
    await picture(page, "next 1 meter")
    await page.set_viewport_size({"width": 390, "height": 800})
    await page.emulate_media(color_scheme="dark")
    await picture(page, "next 2 phone dark")
    await page.set_viewport_size({"width": 1280, "height": 800})
    await meter.get_by_role("button", name="Send in full", exact=True).click()
    await expect(price).to_contain_text("In full, this once")
    always = meter.get_by_role("button", name="Always in full")
    await always.click()
    await expect(price).to_contain_text("Always in full")
    await expect(always).to_have_attribute("aria-pressed", "true")
    await picture(page, "next 3 always")
    await always.click()
    await expect(price).not_to_contain_text("in full")
    await meter.get_by_role("button", name="Compact now").click()
    await expect(page.locator(".marker", has_text="by hand")).to_be_visible()
    await page.goto("about:blank")
    assert "0 mismatches" in served.manage("verify")
