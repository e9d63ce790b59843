"""Folders for chats: made, filled, opened and closed by keyboard or mouse; without script, too."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from tests.e2e.conftest import Snap
from tests.e2e.people import CHAT, NAME, set_up
from tests.e2e.served import Served
from tests.e2e.test_access import AXE, SETTLED, UNSTUCK, findings
from tests.e2e.test_history import open_menu

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

SEED = f"""
from conversations.models import Conversation, Folder, User
owner = User.objects.get(username="{NAME}")
Conversation.objects.filter(owner=owner).update(folder=None)
Folder.objects.filter(owner=owner).delete()
for title in ("Letter to the landlord", "Trip to Reykjavik", "Bread that rises", "Tax return"):
    Conversation.objects.create(owner=owner, title=title, model="claude-opus-4-8")
"""
FULL = f"""
from conversations.models import Conversation, Folder, User
owner = User.objects.get(username="{NAME}")
folder = Folder.objects.create(owner=owner, name="A folder with a name that is long", key="a f")
for number in range(50):
    Conversation.objects.create(
        owner=owner, title=f"Filed {{number:02}}", model="claude-opus-4-8", folder=folder
    )
"""


#: Whether the script has taken the form over; without it the form works as on any page.
TAKEN_OVER = "name => document.querySelector(`#menu [hx-post$='${name}']`)?.['htmx-internal-data']"


async def taken_over(page: Page, form: str) -> None:
    """Wait for a form of the dialog, which a program may fill in before the script is ready."""
    await page.wait_for_function(TAKEN_OVER, arg=form)


async def judge(page: Page, snap: Snap, name: str) -> None:
    """Have axe look at the page, and check that it fits, in each theme, wide and narrow."""
    await page.evaluate(AXE)
    await page.evaluate(SETTLED)
    for theme, width, height in (("light", 1280, 860), ("dark", 1280, 860), ("dark", 390, 844)):
        await page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        await page.set_viewport_size({"width": width, "height": height})
        await page.evaluate(UNSTUCK)
        assert await findings(page) == []
        await page.evaluate("document.adoptedStyleSheets = []")
        assert await page.evaluate("document.scrollingElement.scrollWidth") <= width
        await snap(f"folders {name} {theme} {width}")
    await page.emulate_media(color_scheme="light")
    await page.set_viewport_size({"width": 1280, "height": 860})


async def test_chats_are_filed_by_keyboard_and_the_list_keeps_what_is_open(
    page: Page, served: Served, snap: Snap
) -> None:
    await set_up(page, served)
    served.manage("shell", "-c", SEED)
    await page.goto(f"{served.url}/c/new/")
    rows = page.locator("#rows")

    # A folder is made in a dialog, and an empty one says so.
    await page.locator("#new-folder").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_label("Name of the folder")).to_be_focused()
    await taken_over(page, "/folders/new/")
    await page.keyboard.type("House")
    await page.keyboard.press("Enter")
    await expect(page.locator("#menu")).to_be_hidden()
    folder = page.get_by_role("button", name="House", exact=True)
    await expect(folder).to_have_attribute("aria-expanded", "true")
    await expect(rows.locator(".folder-rows")).to_have_text("No chats are listed here.")
    await page.locator("#new-folder").click()
    await taken_over(page, "/folders/new/")
    await page.get_by_label("Name of the folder").fill("hOUSE")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert").last).to_have_text(
        "You have a folder of this name already."
    )
    await page.keyboard.press("Escape")

    # A chat is moved by its menu, by keys alone.
    row = page.locator("#sidebar .row-box", has_text="Letter to the landlord")
    await row.locator(".row-more").focus()
    await page.keyboard.press("Enter")
    move = page.get_by_role("link", name="Move to a folder")
    await taken_over(page, "/menu/archive/")
    await move.focus()
    await page.keyboard.press("Enter")
    choice = page.get_by_label("Folder", exact=True)
    await expect(choice).to_be_focused()
    await taken_over(page, "/menu/folder/")
    await page.keyboard.type("House")
    await expect(choice.locator("option:checked")).to_have_text("House")
    await judge(page, snap, "move")
    await page.get_by_role("button", name="Move the chat").click()
    await expect(page.locator("#notice")).to_contain_text("The chat is in the folder “House” now.")
    await expect(rows.locator(".folder-rows")).to_contain_text("Letter to the landlord")
    await expect(rows.get_by_text("Letter to the landlord", exact=True)).to_have_count(1)
    await open_menu(page, "Trip to Reykjavik")
    await taken_over(page, "/menu/archive/")
    await page.get_by_role("link", name="Move to a folder").click()
    await taken_over(page, "/menu/folder/")
    await page.get_by_label("Or a new folder").fill("Travel")
    await page.keyboard.press("Enter")
    await expect(page.locator("#menu")).to_be_hidden()
    await expect(rows.locator(".folder")).to_have_count(2)

    # Closed by a key, which keeps the focus; it stays so on the next page.
    await folder.focus()
    await page.keyboard.press("Enter")
    await expect(folder).to_have_attribute("aria-expanded", "false")
    await expect(folder).to_be_focused()
    await expect(rows).not_to_contain_text("Letter to the landlord")
    await page.reload()
    await expect(folder).to_have_attribute("aria-expanded", "false")
    await folder.click()
    await rows.get_by_role("link", name="Letter to the landlord", exact=True).click()
    await page.wait_for_url(CHAT)
    await expect(rows.locator(".row[aria-current]")).to_contain_text("Letter to the landlord")
    await judge(page, snap, "chat")

    # The list of a phone.
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.get_by_role("button", name="Chats", exact=True).click()
    await expect(folder).to_be_visible()
    await page.evaluate(UNSTUCK)
    assert await findings(page) == []
    await page.evaluate("document.adoptedStyleSheets = []")
    await snap("folders list of a phone")


async def test_a_chat_begins_in_a_folder_whose_page_has_all_and_which_goes_without_them(
    page: Page, served: Served, snap: Snap
) -> None:
    await set_up(page, served)
    served.manage("shell", "-c", SEED)
    served.manage("shell", "-c", FULL)
    await page.goto(f"{served.url}/c/new/")
    folder = page.locator(".folder", has_text="A folder with a name")
    await folder.locator(".row").first.click()
    await expect(folder.locator(".folder-rows .row")).to_have_count(10)
    await judge(page, snap, "new")
    await folder.get_by_role("link", name="All chats of the folder").click()
    await page.wait_for_url("**/folders/**")
    main = page.locator("main .rows .row")
    await page.locator("main .more").scroll_into_view_if_needed()
    await expect(main).to_have_count(50)
    await judge(page, snap, "page")

    await page.get_by_role("link", name="New chat in this folder").click()
    await page.wait_for_url(re.compile(r"/c/new/\?folder="))
    await expect(page.get_by_text("This chat will be in the folder")).to_be_visible()
    await judge(page, snap, "new in folder")
    await page.fill("#text", "What time is it in Porto?")
    await page.keyboard.press("Enter")
    await page.wait_for_url(CHAT)
    first = folder.locator(".folder-rows .row").first
    await expect(first).to_have_attribute("aria-current", "page")
    await expect(first).to_contain_text("Porto")

    await folder.locator(".row-more").first.click()
    await expect(page.locator("#menu")).to_contain_text("its 51 chats are kept, in no folder")
    await taken_over(page, "/delete/")
    await judge(page, snap, "menu")
    await page.get_by_role("button", name="Delete the folder").click()
    await expect(page.locator("#notice")).to_contain_text("was deleted; its chats are kept.")
    await expect(page.locator(".folder")).to_have_count(0)
    await expect(page.locator("#rows .row[aria-current]")).to_contain_text("Porto")


async def test_without_script_folders_work_by_links_and_forms(page: Page, served: Served) -> None:
    await set_up(page, served)
    served.manage("shell", "-c", SEED)
    browser = page.context.browser
    assert browser is not None
    context = await browser.new_context(
        java_script_enabled=False,
        storage_state=await page.context.storage_state(),
        reduced_motion="reduce",
    )
    plain = await context.new_page()
    await plain.goto(f"{served.url}/search/")
    await plain.locator("#new-folder").click()
    await plain.get_by_label("Name of the folder").fill("Kitchen")
    await plain.get_by_role("button", name="Make the folder").click()
    await expect(plain.locator("h1")).to_contain_text("Kitchen")
    await plain.goto(f"{served.url}/c/list/")
    await plain.locator("main .row", has_text="Bread that rises").first.click()
    await plain.wait_for_url(CHAT)
    chat = plain.url
    await plain.goto(f"{chat}menu/")
    await plain.get_by_role("link", name="Move to a folder").click()
    await plain.get_by_label("Folder", exact=True).select_option("Kitchen")
    await plain.get_by_role("button", name="Move the chat").click()
    await expect(plain.locator("#notice")).to_contain_text("in the folder “Kitchen” now")
    address, folder = plain.url, plain.locator(".folder button")
    await folder.click()
    assert plain.url == address
    await expect(folder).to_have_attribute("aria-expanded", "false")
    await expect(folder).to_contain_text("The open chat is in it.")
    await expect(plain.locator("#rows")).not_to_contain_text("Bread that rises")
    await folder.click()
    await expect(plain.locator(".folder-rows")).to_contain_text("Bread that rises")
    await context.close()


async def test_names_and_thresholds_have_room_on_the_smallest_screen(
    page: Page, served: Served
) -> None:
    await set_up(page, served)
    await page.set_viewport_size({"width": 320, "height": 700})
    await page.goto(f"{served.url}/folders/new/")
    box = await page.locator("#folder-name").bounding_box()
    assert box is not None
    assert box["width"] > 200
    await page.goto(f"{served.url}/settings/context/")
    cut = "cells => cells.filter((cell) => cell.getBoundingClientRect().right > innerWidth).length"
    heads = page.locator(".thresholds tbody th")
    assert await heads.count() > 5
    assert await heads.evaluate_all(cut) == 0
    assert await page.locator(".thresholds tbody td").evaluate_all(cut) == 0
