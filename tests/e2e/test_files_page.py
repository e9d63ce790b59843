"""A person keeps files: by the button and by the mouse, read, moved, deleted and brought back."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, Page, expect

from tests.e2e.conftest import Snap
from tests.e2e.people import ended, log_in, set_up, start_chat
from tests.e2e.served import Served
from tests.e2e.test_attachments import file, give
from tests.tools import samples

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
NOTES = file("notes.md", "text/markdown", b"# Criteria\n\nRemote only, 500 euros a day.\n")


async def empty(page: Page, served: Served) -> None:
    """Begin with nothing: the served app keeps its files from test to test."""
    await set_up(page, served)
    await page.goto(f"{served.url}/files/")
    while await (button := page.locator(".file-rows form button").first).is_visible():
        await button.click()
        await page.wait_for_load_state()


async def test_files_come_in_are_seen_moved_deleted_and_back(
    page: Page, served: Served, snap: Snap
) -> None:
    await empty(page, served)
    await snap("workspace empty")
    book = samples.xlsx({"Rates": [["Name", "Rate"], ["Acme", 600]]})
    await page.set_input_files(
        "input[name=files]", [NOTES, file("rates.xlsx", "application/octet-stream", book)]
    )
    await page.get_by_role("button", name="Add files").click()
    await expect(page.get_by_text("2 files were added.")).to_be_visible()
    await give(page, "dragover", NOTES)
    await expect(page.get_by_text("Drop to add")).to_be_visible()
    await give(page, "drop", NOTES)
    await expect(page.get_by_role("link", name="notes (2).md", exact=True)).to_be_visible()
    await page.get_by_role("link", name="notes (2).md", exact=True).click()
    await expect(page.locator(".file-text")).to_contain_text("Remote only")
    await page.fill("#to", "job search/criteria.md")
    await page.get_by_role("button", name="Move").click()
    await expect(page.get_by_text("Moved to “job search/criteria.md”.")).to_be_visible()
    await snap("workspace file")
    await page.locator(".trail").get_by_role("link", name="Workspace").click()
    await snap("workspace files")
    await page.get_by_role("button", name="Delete job search and all in it").click()
    await expect(page.get_by_role("link", name="job search")).to_have_count(0)
    await page.locator("#notice").get_by_role("button", name="Undo").click()
    await expect(page.get_by_text("“job search/criteria.md” is back.")).to_be_visible()
    await page.goto(f"{served.url}/files/")
    await page.get_by_role("link", name="rates.xlsx", exact=True).click()
    await expect(page.locator(".file-text")).to_contain_text("| Acme | 600 |")
    async with page.expect_download() as download:
        await page.get_by_role("link", name="Download").click()
    assert (await download.value).suggested_filename == "rates.xlsx"


async def test_what_is_too_big_is_said_before_it_is_sent(page: Page, served: Served) -> None:
    await empty(page, served)
    big = file("big.bin", "application/octet-stream", b"x" * 5_000_001)
    await page.set_input_files("input[name=files]", [big])
    await expect(page.locator("#upload-state")).to_contain_text("big.bin is too big")


async def test_a_file_the_assistant_wrote_is_opened_from_its_card(
    page: Page, served: Served
) -> None:
    await empty(page, served)
    await page.set_input_files("input[name=files]", [NOTES])
    await page.get_by_role("button", name="Add files").click()
    await expect(page.get_by_text("1 file was added.")).to_be_visible()
    await start_chat(page, served, "read notes.md")
    section = await ended(page, 1)
    await section.locator("details.tools > summary, details.tool > summary").first.click()
    card = section.locator("details.tool").first
    if not await card.locator("a", has_text="Open the file").is_visible():
        await card.locator("summary").click()
    await card.get_by_role("link", name="Open the file").click()
    await expect(page.locator("h1")).to_have_text("notes.md")
    await expect(page.locator(".file-text")).to_contain_text("Remote only")


async def test_everything_works_without_script(
    browser: Browser, page: Page, served: Served
) -> None:
    await empty(page, served)
    context = await browser.new_context(java_script_enabled=False, reduced_motion="reduce")
    plain = await context.new_page()
    await log_in(plain, served)
    await plain.goto(f"{served.url}/files/")
    await plain.set_input_files("input[name=files]", [NOTES])
    await plain.get_by_role("button", name="Add files").click()
    await expect(plain.get_by_text("1 file was added.")).to_be_visible()
    await plain.get_by_role("button", name="Delete notes.md").click()
    await plain.locator("#notice").get_by_role("button", name="Undo").click()
    await expect(plain.get_by_role("link", name="notes.md", exact=True)).to_be_visible()
    await context.close()
