"""Tools in the browser: a new one with its card, how far it is, and the page that switches it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.e2e.conftest import Serve, picture
from tests.e2e.people import ended, log_in, say, set_up, start_chat, turn
from tests.e2e.served import PROJECT, Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
_SECONDS = re.compile(r"^\d+ s$")
#: Read by a starting Python: the folder of tools gets a second place.
START = """
import sys
sys.path.insert(0, {project!r})
import tools
tools.__path__.append({folder!r})
"""
SLOW = '''
import asyncio
from pathlib import Path

from tools.framework.tool import ToolContext, tool


@tool(icon="file", effect="read", results="keep", timeout=600)
async def count_pages(context: ToolContext) -> str:
    """Count the pages of a long book, until somebody has seen enough."""
    page = 0
    while not Path(__file__).with_name("enough").exists():
        page += 1
        context.progress(f"page {page} of a <b>book</b>" if page % 40 < 20 else page % 40 / 40)
        await asyncio.sleep(0.1)
    return "There are 30 pages."
'''


async def test_a_long_tool_says_how_far_it_is_and_can_be_switched_off(
    browser: Browser, page: Page, serve_app: Serve, tmp_path: Path
) -> None:
    folder = tmp_path / "more"
    folder.mkdir()
    folder.joinpath("count_pages.py").write_text(SLOW, encoding="utf-8")
    start = START.format(project=str(PROJECT), folder=str(folder))
    tmp_path.joinpath("sitecustomize.py").write_text(start, encoding="utf-8")
    served = serve_app(PYTHONPATH=str(tmp_path), AGENTWEB_EMULATOR_DELAY_MS="1")
    await set_up(page, served)
    await start_chat(page, served, "Call the tool count_pages")
    card = turn(page, 1).locator(".tool", has_text="count_pages")
    await expect(card.locator(".said")).to_contain_text("of a <b>book</b>", timeout=60_000)
    await expect(card.locator("time[data-elapsed]")).to_have_text(_SECONDS, timeout=60_000)
    await picture(page, "tools 1 words")
    # A page that comes later is told as well.
    await page.reload()
    await expect(card.locator(".said progress")).to_be_visible(timeout=60_000)
    await picture(page, "tools 2 share")
    folder.joinpath("enough").touch()
    await ended(page, 1)
    await expect(card.locator(".said")).to_have_count(0)
    chat = page.url
    await the_page_switches_it_off(page, chat)
    await page.goto("about:blank")
    await the_page_fits_a_phone(browser, served, chat)


async def the_page_switches_it_off(page: Page, chat: str) -> None:
    await page.goto(f"{chat}menu/")
    await page.get_by_role("link", name="Tools").click()
    await page.wait_for_url("**/tools/")
    await picture(page, "tools 3 page", full_page=True)
    await page.get_by_label("Count pages").uncheck()
    await page.get_by_role("button", name="Save").click()
    await page.wait_for_url(chat)
    await say(page, "Call the tool count_pages")
    section = await ended(page, 2)
    await expect(section).to_contain_text("not offered to me")
    await expect(turn(page, 1).locator(".tool", has_text="count_pages")).to_be_visible()


async def the_page_fits_a_phone(browser: Browser, served: Served, chat: str) -> None:
    context = await browser.new_context(
        viewport={"width": 390, "height": 844}, color_scheme="dark", reduced_motion="reduce"
    )
    page = await context.new_page()
    await log_in(page, served)
    await page.goto(f"{chat}tools/")
    await picture(page, "tools 4 phone", full_page=True)
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390
    await expect(page.get_by_label("Count pages")).not_to_be_checked()
    await context.close()
