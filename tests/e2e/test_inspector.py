"""The inspector in a browser: the course of a conversation, one call, and what changed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.async_api import Page, expect

from agentweb.demo import job_site
from agentweb.demo.workspace import PROMPTS, list_workspace_files
from agentweb.emulator.server import Server
from tests.e2e.conftest import Serve, picture
from tests.e2e.people import allow, ended, set_up, start_chat, upload
from tests.e2e.served import Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
WIDE = {"width": 1400, "height": 900}


@pytest.fixture(scope="module")
def jobs() -> Iterator[Server]:
    """The small site of job pages, on loopback."""
    running = job_site.start_site()
    yield running
    running.stop()


async def test_the_inspector_shows_what_the_model_saw_and_what_was_taken(
    page: Page, serve_app: Serve, jobs: Server
) -> None:
    port = jobs.url.rsplit(":", 1)[1]
    served = serve_app(
        AGENTWEB_FETCH_PRIVATE_HOSTS=f"127.0.0.1:{port}",
        AGENTWEB_EMULATOR_DELAY_MS="1",
        AGENTWEB_POLICY="tool-budget",
    )
    await page.set_viewport_size(WIDE)
    await set_up(page, served)
    await upload(page, served, list_workspace_files(job_site.make_list_url(jobs.url)))
    await start_chat(page, served, PROMPTS[0])
    await allow(page, "fetch_url")
    await ended(page, 1)
    chat = page.url
    await the_drawer_opens_and_closes_by_key(page)
    await the_timeline_has_calls_and_changes(page, chat)
    await a_call_shows_a_result_beside_its_original(page)
    await a_difference_is_found_by_choosing_two_calls(page, chat)
    await the_list_of_chats_stays(page, chat)
    await everything_fits_a_phone(page, chat)
    await what_was_cut_most_is_three_clicks_away(page, served, chat)


async def the_drawer_opens_and_closes_by_key(page: Page) -> None:
    drawer = page.locator("#inspector")
    await expect(drawer).to_be_hidden()
    await page.locator("#transcript").focus()
    await page.keyboard.press("i")
    await expect(drawer).to_be_visible()
    await expect(drawer.locator(".call").first).to_be_visible()
    await expect(drawer.locator(".makeup-bar")).to_be_visible()
    await picture(page, "inspector 1 drawer")
    # It is remembered, with what it shows.
    await page.reload()
    await expect(drawer.locator(".call").first).to_be_visible()
    await expect(drawer.locator("[data-close='inspector']")).to_be_visible()
    await page.locator("#transcript").focus()
    await page.keyboard.press("Escape")
    await expect(drawer).to_be_hidden()
    # In the message box it is a letter.
    await page.focus("textarea[name=text]")
    await page.keyboard.press("i")
    await expect(drawer).to_be_hidden()
    await page.fill("textarea[name=text]", "")
    await page.locator("#meter summary").click()
    await expect(page.locator("#meter .makeup-bar")).to_be_visible()
    await page.locator("#meter summary").click()


async def the_timeline_has_calls_and_changes(page: Page, chat: str) -> None:
    await page.goto(f"{chat}inspect/")
    await expect(page.locator(".call").first).to_be_visible()
    await expect(page.locator(".change-row").first).to_contain_text("Context reduced")
    await expect(page.locator(".makeup-bar").first).to_be_visible()
    charts = page.locator(".charts .chart-plot")
    await page.locator(".charts .lazy").last.scroll_into_view_if_needed()
    await expect(charts).to_have_count(4)
    table = page.locator(".chart-table").first
    await table.locator("summary").click()
    await expect(table.locator("tbody tr").first).to_be_visible()
    await picture(page, "inspector 2 timeline", full_page=True)


async def a_call_shows_a_result_beside_its_original(page: Page) -> None:
    await page.locator(".who-calls").first.click()
    await expect(page.locator("h1")).to_contain_text("Call ")
    await expect(page.locator(".proofs .holds")).to_have_count(
        await page.locator(".proofs li").count()
    )
    short = page.locator(".sent-row.is-shortened").first
    await expect(short).to_contain_text("characters")
    await short.locator("summary").click()
    await expect(short.locator("pre.before")).to_be_visible()
    after = await short.locator("pre.after").inner_text()
    before = await short.locator("pre.before").inner_text()
    assert len(after) < len(before)
    assert "recall" in after
    await picture(page, "inspector 3 call", full_page=True)
    await page.get_by_role("link", name="Raw request").click()
    await expect(page.locator("pre.json")).to_contain_text('"messages"')
    await expect(page.locator("main")).to_contain_text("equals the recorded digest")
    async with page.expect_download() as saved:
        await page.get_by_role("link", name="Download the exact bytes").click()
    assert re.fullmatch(r"call-\d+\.json", (await saved.value).suggested_filename)


async def a_difference_is_found_by_choosing_two_calls(page: Page, chat: str) -> None:
    await page.goto(f"{chat}inspect/")
    await loaded(page)
    calls = page.locator(".call:not(.is-aside)")
    await calls.last.locator("input[name=a]").check()
    await calls.first.locator("input[name=b]").check()
    await page.locator(".charts .lazy").last.scroll_into_view_if_needed()
    await expect(page.locator(".charts .chart-plot")).to_have_count(4)
    await page.get_by_role("button", name="Compare the two chosen calls").click()
    await expect(page.locator("h1")).to_contain_text("From call 1 to call")
    await expect(page.locator(".differs").first).to_be_visible()
    await picture(page, "inspector 4 difference", full_page=True)


async def loaded(page: Page) -> None:
    """Wait for what comes by itself: a request that a new page cuts off is an error."""
    await expect(page.locator(".makeup-bar").first).to_be_visible()


async def the_list_of_chats_stays(page: Page, chat: str) -> None:
    """Beside the page where there is room, else behind its button; never in the way of the keys."""
    await page.goto(f"{chat}inspect/calls/3/")
    row = page.locator("#sidebar .row[aria-current='true']")
    await expect(row).to_be_visible()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await page.keyboard.press("Tab")
    await expect(page.locator(".crumbs a").first).to_be_focused()
    await page.set_viewport_size({"width": 390, "height": 844})
    await expect(row).to_be_hidden()
    await page.get_by_role("button", name="Chats").click()
    await row.click()
    await page.wait_for_url(chat)
    await page.go_back()
    await expect(page.locator("h1")).to_contain_text("Call 3")
    await page.locator(".crumbs a").first.click()
    await page.wait_for_url(chat)


async def everything_fits_a_phone(page: Page, chat: str) -> None:
    for path in ("", "calls/3/", "diff/2..5/", "calls/3/request/"):
        await page.goto(f"{chat}inspect/{path}")
        await expect(page.locator("h1")).to_be_visible()
        if not path:
            await loaded(page)
        # 640: 1280 at 200 %.
        for width in (1280, 860, 768, 640, 390, 320):
            await page.set_viewport_size({"width": width, "height": 844})
            assert await page.evaluate("document.documentElement.scrollWidth") <= width, path
    await page.set_viewport_size({"width": 390, "height": 844})
    # Without room for a drawer the key leads to the page.
    await page.goto(chat)
    await page.locator("#transcript").focus()
    await page.keyboard.press("i")
    await page.wait_for_url("**/inspect/")
    await loaded(page)


async def what_was_cut_most_is_three_clicks_away(page: Page, served: Served, chat: str) -> None:
    """From the staff's first page, with a later chat that lost nothing."""
    await page.set_viewport_size(WIDE)
    await start_chat(page, served, "Hello there")
    await ended(page, 1)
    await page.goto(f"{served.url}/admin/")
    await page.get_by_role("link", name="Reductions: from which chats most was").click()
    rows = page.locator("#result_list tbody tr")
    await expect(rows).to_have_count(2)
    await expect(rows.last.locator(".field-tokens_freed")).to_have_text("0")
    await rows.first.locator(".field-tokens_freed a").click()
    await page.locator("#result_list tbody tr th a").first.click()
    change = page.locator(".record-change").first
    before, after = (change.locator("pre.record").nth(at) for at in (0, 1))
    assert len(await after.inner_text()) < len(await before.inner_text())
    link = page.get_by_role("link", name="The chat in the inspector")
    assert chat.rstrip("/").rpartition("/")[2] in str(await link.get_attribute("href"))
