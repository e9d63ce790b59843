"""Conversations as things one keeps: found, named, starred, put away, thrown away, taken along."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.e2e.people import CHAT, NAME, ended, log_in, set_up, start_chat
from tests.e2e.served import Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

SEED = f"""
from conversations.models import Conversation, User
owner = User.objects.get(username="{NAME}")
for number in range(36):
    Conversation.objects.create(owner=owner, title=f"Chat {{number:02}}", model="claude-opus-4-8")
"""

AROUND_MIDNIGHT = f"""
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo
from conversations.models import Conversation, User
owner = User.objects.get(username="{NAME}")
now = datetime.now(ZoneInfo("Asia/Tokyo"))
Conversation.objects.filter(owner=owner).update(archived_at=now)
midnight = datetime.combine(now.date(), time(), now.tzinfo)
for title, at in (("First train", midnight), ("Last train", midnight - timedelta(seconds=1))):
    row = Conversation.objects.create(owner=owner, title=title, model="claude-opus-4-8")
    Conversation.objects.filter(pk=row.pk).update(updated_at=at)
"""


async def open_menu(page: Page, title: str) -> None:
    row = page.locator("#sidebar .row-box", has_text=title)
    await row.hover()
    await row.locator(".row-more").click()
    await expect(page.locator("#menu")).to_be_visible()


async def test_a_conversation_is_renamed_starred_archived_deleted_and_brought_back(
    page: Page, served: Served
) -> None:
    await set_up(page, served)
    await start_chat(page, served, "What time is it in Lisbon?")
    await ended(page, 1)
    await open_menu(page, "Lisbon")
    await expect(page.locator("#menu-text")).to_be_focused()
    await page.get_by_role("button", name="Close").click()
    await expect(page.locator("#menu")).to_be_hidden()
    await open_menu(page, "Lisbon")
    await page.fill("#menu-text", "Clock of Lisbon")
    await page.keyboard.press("Enter")
    await expect(page.locator("#menu")).to_be_hidden()
    await expect(page.locator("#title")).to_have_text("Clock of Lisbon")
    await expect(page.locator("#notice")).to_contain_text("Renamed.")

    await open_menu(page, "Clock of Lisbon")
    await page.get_by_role("button", name="Star: keep at the top").click()
    await expect(page.locator("#rows h2").first).to_have_text("Starred")
    await open_menu(page, "Clock of Lisbon")
    await page.get_by_role("button", name="Archive").click()
    await expect(page.locator("#rows")).not_to_contain_text("Clock of Lisbon")
    await page.click("text=Archived >> nth=0")
    await expect(page.locator("main")).to_contain_text("Clock of Lisbon")
    await page.locator("main .row-more").click()
    await page.get_by_role("button", name="Back to the list").click()
    await expect(page.locator("main")).to_contain_text("Nothing is archived.")

    await page.locator("#sidebar .row", has_text="Clock of Lisbon").click()
    await page.wait_for_url(CHAT)
    address = page.url
    await open_menu(page, "Clock of Lisbon")
    await page.get_by_role("button", name="Delete").click()
    await page.wait_for_url("**/c/new/")
    await expect(page.locator("#rows")).not_to_contain_text("Clock of Lisbon")
    # A day is written as the reader writes it, like every moment.
    other = await page.context.new_page()
    for place in ("trash/", "settings/account/"):
        await other.goto(f"{served.url}/{place}")
        day = other.locator("main time[data-when='day']").first
        await expect(day).to_have_text(re.compile(r"^\d{1,2} [A-Z][a-z]{2,3} \d{4}$"))
    await other.close()
    await page.get_by_role("button", name="Undo").click()
    await page.wait_for_url(address)
    await expect(page.locator("#turn-1")).to_be_visible()


async def test_who_is_faster_than_the_page_stays_on_it(page: Page, served: Served) -> None:
    await set_up(page, served)
    await start_chat(page, served, "What time is it in Faro?")
    await ended(page, 1)
    await page.evaluate("""() => document.addEventListener("htmx:afterSwap", ({ target }) => {
        const form = target.querySelector("form.menu-name");
        if (form) setTimeout(() => form.requestSubmit());
    })""")
    await page.locator("#sidebar .row-box", has_text="Faro").locator(".row-more").click()
    await expect(page.locator("#notice")).to_contain_text("Renamed.")
    assert CHAT.search(page.url)


async def test_a_message_is_found_while_one_types_and_opened_in_its_place(
    page: Page, served: Served
) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Write a file walnut.md with the word macadamia")
    await ended(page, 1)
    await page.keyboard.press("Control+k")
    await page.wait_for_url("**/search/")
    await page.locator("#q").press_sequentially("macad")
    said = page.locator("small", has_text="You")
    hit = page.locator(".hits li").filter(has=said).first
    await expect(hit.locator("mark").first).to_have_text("macadamia")
    assert re.search(r"\?q=macad", page.url)
    await hit.locator("a").click()
    await page.wait_for_url(re.compile(r"/c/[0-9a-f-]{36}/\?m=\d+#m-\d+$"))
    await expect(page.locator(".prompt:target")).to_be_in_viewport()
    await page.goto(f"{served.url}/search/?q=zzzzz")
    await expect(page.locator("#found")).to_contain_text("Nothing was found")


async def test_what_is_exported_can_be_imported_again(
    page: Page, served: Served, tmp_path: Path
) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Hello, a talk to export")
    await ended(page, 1)
    await open_menu(page, "a talk to export")
    async with page.expect_download() as begun:
        await page.get_by_role("link", name="JSON").click()
    line = Path(await (await begun.value).path()).read_text(encoding="utf-8")
    record = json.loads(line)
    assert record["title"] == "Hello, a talk to export"

    await page.goto(f"{served.url}/settings/data/")
    async with page.expect_download() as begun:
        await page.get_by_role("button", name="Export everything").click()
    with zipfile.ZipFile(await (await begun.value).path()) as archive:
        assert archive.testzip() is None
        assert record["id"] in archive.read("conversations.jsonl").decode()
        [name] = [n for n in archive.namelist() if n.startswith("html/") and record["id"][:8] in n]
        assert "a talk to export" in archive.read(name).decode()

    file = tmp_path / "conversations.json"
    copy = record | {"id": "a-copy", "title": "The copy"}
    file.write_text(json.dumps([copy, {"title": "Bad"}]), "utf-8")
    await page.set_input_files("[name=file]", file)
    await page.get_by_role("button", name="Import", exact=True).click()
    await expect(page.locator(".report")).to_contain_text("1 chat imported")
    await expect(page.locator(".report")).to_contain_text("Bad: is no chat")
    await page.get_by_role("link", name="The copy").first.click()
    await page.wait_for_url(CHAT)
    await expect(page.locator("#turn-1")).to_contain_text("Hello, a talk to export")
    await page.goto("about:blank")


async def test_without_script_everything_works_by_links_and_forms(
    page: Page, served: Served
) -> None:
    await set_up(page, served)
    await start_chat(page, served, "A talk without script")
    await ended(page, 1)
    address = page.url
    browser = page.context.browser
    assert browser is not None
    context = await browser.new_context(
        java_script_enabled=False,
        storage_state=await page.context.storage_state(),
        reduced_motion="reduce",
    )
    plain = await context.new_page()
    await plain.goto(f"{address}menu/")
    await plain.fill("#menu-text", "Plainly renamed")
    await plain.get_by_role("button", name="Rename").click()
    await expect(plain.locator("#notice")).to_contain_text("Renamed.")
    await plain.get_by_role("button", name="Star: keep at the top").click()
    await plain.goto(f"{served.url}/search/")
    await plain.fill("#q", "plainly")
    await plain.get_by_role("button", name="Search").click()
    await plain.locator(".hits a").first.click()
    await expect(plain.locator("#title")).to_have_text("Plainly renamed")
    await plain.goto(f"{address}menu/")
    await plain.get_by_role("button", name="Delete").click()
    await plain.get_by_role("button", name="Undo").click()
    await expect(plain.locator("#title")).to_have_text("Plainly renamed")
    await context.close()
    await page.goto("about:blank")


async def test_the_open_chat_is_in_view_in_a_long_list_which_does_not_jump(
    page: Page, served: Served
) -> None:
    await set_up(page, served)
    served.manage("shell", "-c", SEED)
    await page.goto(f"{served.url}/c/new/")
    rows = page.locator("#rows")
    assert await rows.evaluate("list => list.scrollHeight > 1.5 * list.clientHeight")

    await rows.locator(".row", has_text="Chat 33").click()
    await page.wait_for_url(CHAT)
    assert await rows.evaluate("list => list.scrollTop") == 0

    await rows.locator(".row", has_text="Chat 01").click()
    await expect(page.locator("#title")).to_have_text("Chat 01")
    current = rows.locator(".row[aria-current]")
    # A row at the edge may lose a part of a pixel.
    await expect(current).to_be_in_viewport(ratio=0.9)
    await expect(current.locator(".row-title")).to_have_text("Chat 01")

    # Where people read from right to left, an arrow points the other way.
    await page.goto(page.url.rstrip("/") + "/menu/")
    await page.evaluate("document.documentElement.dir = 'rtl'")
    mirrored = "way => getComputedStyle(way).transform"
    assert await page.locator(".crumbs .way").evaluate(mirrored) == "matrix(-1, 0, 0, 1, 0, 0)"


async def test_the_list_has_the_days_of_its_reader_on_a_journey_too(
    page: Page, served: Served
) -> None:
    await set_up(page, served)
    served.manage("shell", "-c", AROUND_MIDNIGHT)
    browser = page.context.browser
    assert browser is not None
    context = await browser.new_context(timezone_id="Asia/Tokyo", reduced_motion="reduce")
    home = await context.new_page()
    await log_in(home, served)
    await expect(home.locator("h2:text('Yesterday') + ul")).to_contain_text("Last train")
    await expect(home.locator("h2:text('Today') + ul")).to_contain_text("First train")
    kept = await context.storage_state()
    await context.close()
    # Where it is day then, both were on the same one.
    context = await browser.new_context(
        timezone_id="America/Los_Angeles", storage_state=kept, reduced_motion="reduce"
    )
    away = await context.new_page()
    await away.goto(f"{served.url}/c/new/")
    day = away.locator("#rows ul", has_text="First train")
    await expect(day).not_to_contain_text("Last train")
    await away.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await expect(day).to_contain_text("Last train")
    await context.close()
