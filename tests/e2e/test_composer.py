"""The message box of a new chat: what a draft keeps."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

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
