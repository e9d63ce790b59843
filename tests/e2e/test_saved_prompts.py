"""Saved prompts in the composer: chosen by keyboard, mouse or touch, filled in, read, then sent."""

from __future__ import annotations

import pytest
from playwright.async_api import Locator, Page, expect

from tests.e2e.conftest import Snap
from tests.e2e.people import CHAT, ended, set_up
from tests.e2e.served import Served
from tests.e2e.test_access import AXE, SETTLED, UNSTUCK, findings

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
TEXT = (
    "Write about {{topic}} in a {{tone:formal|friendly}} tone for {{reader=everybody}}.\n"
    "Keep \\{{these}} <b>as they are</b>."
)


async def keep(page: Page, served: Served, title: str, command: str, text: str) -> None:
    await page.goto(f"{served.url}/settings/prompts/new/")
    await page.get_by_label("Title").fill(title)
    await page.get_by_label("Command").fill(command)
    await page.get_by_label("Text", exact=True).fill(text)
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("The prompt was saved.")).to_be_visible()


def options(page: Page) -> Locator:
    return page.get_by_role("listbox", name="Prompts").get_by_role("option")


async def judge(page: Page, snap: Snap, name: str) -> None:
    """Have axe look at the page, and check that it fits, light and wide, dark and narrow."""
    await page.evaluate(SETTLED)
    for theme, width, height in (("light", 1280, 860), ("dark", 390, 844)):
        await page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        await page.set_viewport_size({"width": width, "height": height})
        # What the bar at the bottom half covers is a matter of where the page was scrolled to.
        await page.evaluate(UNSTUCK)
        assert await findings(page) == []
        await page.evaluate("document.adoptedStyleSheets = []")
        assert await page.evaluate("document.scrollingElement.scrollWidth") <= width
        await snap(f"prompts {name} {theme}")


async def test_a_prompt_is_chosen_by_keyboard_filled_in_and_sent_by_its_person(
    page: Page, served: Served, snap: Snap
) -> None:
    await set_up(page, served)
    await keep(page, served, "Weekly report", "weekly-report", "Sum up the week.")
    await keep(page, served, "Write a text", "write", TEXT)
    await page.goto(f"{served.url}/c/new/")
    await page.evaluate(AXE)
    box, asked = page.locator("#text"), page.get_by_role("combobox", name="Find a prompt")

    # What is no command goes back into the message as it was typed.
    await box.press_sequentially("/etc/hosts is wrong")
    await expect(box).to_have_value("/etc/hosts is wrong")
    await expect(asked).to_be_hidden()
    await box.fill("")
    await box.press_sequentially("/nothing")
    await expect(page.get_by_text("No prompt fits.")).to_be_visible()
    await asked.press_sequentially(" ")
    await expect(box).to_have_value("/nothing ")
    await box.fill("")
    await box.press("/")
    await expect(asked).to_be_focused()
    await expect(options(page)).to_have_count(2)
    await page.keyboard.type("we")
    await page.keyboard.press("Escape")
    await expect(box).to_be_focused()
    await expect(box).to_have_value("/we")

    # Enter at once takes what fits best; arrows take another.
    await box.fill("")
    await page.keyboard.type("/wee")
    await page.keyboard.press("Enter")
    await expect(box).to_have_value("Sum up the week.")
    await box.fill("")
    await box.press("/")
    await expect(options(page)).to_have_count(2)
    await expect(asked).to_have_attribute("aria-activedescendant", "prompt-option-1")
    await judge(page, snap, "list")
    await page.keyboard.press("ArrowDown")
    await expect(options(page).nth(1)).to_have_attribute("aria-selected", "true")
    await expect(asked).to_have_attribute("aria-activedescendant", "prompt-option-2")
    await page.keyboard.press("Enter")
    await expect(page.get_by_label("topic")).to_be_focused()
    await judge(page, snap, "form")
    await page.keyboard.type("bees")
    await page.get_by_label("tone").select_option("friendly")
    await page.get_by_label("reader").press("Enter")
    said = "Write about bees in a friendly tone for everybody.\nKeep {{these}} <b>as they are</b>."
    await expect(box).to_have_value(said)
    await expect(box).to_be_focused()
    assert page.url.endswith("/c/new/")

    # Its person sends it; in a chat the button puts a text where the caret is.
    await page.keyboard.press("Enter")
    await page.wait_for_url(CHAT)
    await ended(page, 1)
    await expect(page.locator("#turn-1 .bubble")).to_have_text(said, use_inner_text=True)
    await box.fill("First: . Thanks.")
    await box.evaluate("box => box.setSelectionRange(7, 7)")
    await page.get_by_role("button", name="Prompts").click()
    await options(page).filter(has_text="Weekly report").click()
    await expect(box).to_have_value("First: Sum up the week.. Thanks.")
    await expect(page.locator(".turn")).to_have_count(1)
