"""The clicks of the meter: compact now, in full this once, always in full."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.e2e.conftest import Serve, picture
from tests.e2e.people import ended, say, set_up, start_chat, upload
from tests.e2e.served import Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
NOTES = "A line of the notes that nobody asks for.\n" * 600


#: Wide and low, as on a laptop at 150 %; a small phone; a phone lying on its side; a large screen.
SIZES = ((1280, 570), (853, 573), (320, 568), (844, 390), (1280, 860))


async def test_what_the_composer_opens_is_whole_on_every_screen(page: Page, served: Served) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Hello")
    await ended(page, 1)
    for width, height in SIZES:
        await page.set_viewport_size({"width": width, "height": height})
        bar = await page.locator(".bar").bounding_box()
        assert bar is not None
        for which in ("#meter", ".chooser >> nth=0"):
            opened = page.locator(which)
            await opened.locator("summary").first.click()
            box = await opened.locator(".panel").bounding_box()
            assert box is not None
            assert box["y"] >= bar["y"] + bar["height"] - 1, (which, width, height)
            assert box["x"] >= 0, (which, width, height)
            assert box["x"] + box["width"] <= width, (which, width, height)
            last = opened.locator(".panel").locator("a, label").last
            await last.scroll_into_view_if_needed()
            await expect(last).to_be_in_viewport(ratio=0.9)
            await page.locator("#title").click()


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
