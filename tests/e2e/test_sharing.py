"""A chat is shared by a link: made in its menu, read by somebody else, taken back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, expect

from tests.e2e import served as app
from tests.e2e.conftest import Watch, observe, picture
from tests.e2e.people import ended, say, set_up, start_chat, upload
from tests.e2e.served import Served
from tests.e2e.test_access import judge

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
LOOKS: tuple[tuple[Literal["light", "dark"], int], ...] = (
    ("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390),
)  # fmt: skip


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Give an app whose links may be opened by anybody."""
    running = app.fork(tmp_path_factory.mktemp("sharing") / "data", AGENTWEB_SHARING="public")
    yield running
    running.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def stranger(browser: Browser, watch: Watch) -> AsyncIterator[Page]:
    """Give a page of somebody else, in whose browser no script runs."""
    context: BrowserContext = await browser.new_context(
        locale="en-GB",
        reduced_motion="reduce",
        java_script_enabled=False,
        viewport={"width": 390, "height": 780},
    )
    page = await context.new_page()
    observe(page, watch)
    yield page
    await context.close()


async def look(page: Page, name: str) -> None:
    """Keep a picture of each look."""
    for scheme, width in LOOKS:
        await page.set_viewport_size({"width": width, "height": 860})
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        await picture(page, f"{name} {scheme} {width}")
    await page.set_viewport_size({"width": 1280, "height": 860})


async def open_dialog(page: Page) -> None:
    await page.get_by_role("link", name="More").click()
    await page.locator("#menu").get_by_role("link", name="Share…").click()
    await expect(page.locator("#menu h2")).to_have_text("Share this chat")


async def test_a_link_is_made_read_by_a_stranger_and_revoked(
    page: Page, stranger: Page, public: Served, watch: Watch
) -> None:
    await set_up(page, public)
    await upload(page, public, {"notes.txt": "bring milk"})
    await start_chat(page, public, "Please show me a heading, a list, a table and a code block")
    await ended(page, 1)
    await say(page, "read notes.txt")
    await ended(page, 2)
    await open_dialog(page)
    await look(page, "share dialog new")
    await page.get_by_label("Anybody who has the link").check()
    await page.get_by_role("button", name="Make the link").click()
    address = await page.locator("#menu a.share-url").get_attribute("href")
    assert address is not None
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    # What comes next has the focus.
    await expect(page.locator("#menu").get_by_role("button", name="Copy")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("#menu").get_by_role("button", name="Copied")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == address
    await look(page, "share dialog made")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("link", name="Shared")).to_be_visible()
    await picture(page, "shared chat")

    await stranger.goto(address)
    await expect(stranger.locator(".turn")).to_have_count(2)
    await expect(stranger.locator(".turn").first).to_contain_text("a heading, a list, a table")
    assert await stranger.locator("form, textarea, button, script, details").count() == 0
    await say(page, "One more thing")
    await ended(page, 3)
    await stranger.reload()
    await expect(stranger.locator(".turn")).to_have_count(2)

    await page.get_by_role("link", name="Shared").click()
    await expect(page.locator("#menu")).to_contain_text("opened 1 time")
    await page.get_by_label("With what was said since").check()
    await page.get_by_label("With tool calls and their results").check()
    await page.get_by_role("button", name="Change the link").click()
    await expect(page.get_by_label("With what was said since")).to_have_count(0)
    await stranger.reload()
    await expect(stranger.locator(".turn")).to_have_count(3)
    await stranger.locator("summary").click()
    await expect(stranger.locator(".insides")).to_contain_text("bring milk")

    await page.get_by_role("button", name="Revoke the link").click()
    await expect(page.locator("#menu")).to_contain_text("Nobody can open it any more")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("link", name="Shared")).to_have_count(0)
    await stranger.reload()
    await expect(stranger.locator("h1")).to_have_text("This link does not work")
    watch.errors.clear()  # the page that is not there


async def test_the_pages_of_sharing_pass_axe_in_every_look(
    page: Page, browser: Browser, public: Served, watch: Watch
) -> None:
    await set_up(page, public)
    await start_chat(page, public, "Please show me a heading, a list, a table and a code block")
    await ended(page, 1)
    chat = page.url
    found: list[str] = []
    await page.goto(f"{chat}share/")
    found += await judge(page, "/c/ID/share/ new")
    await page.get_by_label("With tool calls and their results").check()
    await page.get_by_role("button", name="Make the link").click()
    await expect(page.locator("a.share-url")).to_be_visible()
    found += await judge(page, "/c/ID/share/")
    address = await page.locator("a.share-url").get_attribute("href")
    assert address is not None
    await page.goto(f"{public.url}/settings/data/links/")
    found += await judge(page, "/settings/data/links/")
    await look(page, "list of links")
    async with await browser.new_context(locale="en-GB", reduced_motion="reduce") as context:
        other = await context.new_page()
        observe(other, watch)
        await other.goto(address)
        # Made for whoever is logged in: nobody else, although the site has links for strangers.
        assert "/accounts/login/" in other.url
    await page.goto(address)
    found += await judge(page, "/s/TOKEN/")
    await look(page, "shared page")
    await page.goto(f"{public.url}/s/unknown/")
    found += await judge(page, "/s/unknown/")
    await look(page, "shared page gone")
    watch.errors.clear()  # the page that is not there
    assert not found, "\n".join(found)
