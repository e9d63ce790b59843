"""A chat is deleted in one tab while it is open in another, with a draft."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Page, WebSocketRoute, expect

from tests.e2e.people import CHAT, ended, say, start_chat
from tests.e2e.served import Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]


async def delete(other: Page, chat: str) -> None:
    await other.goto(f"{chat}menu/")
    await other.get_by_role("button", name="Delete").click()
    await other.wait_for_url("**/c/list/")


async def test_a_page_says_at_once_that_its_chat_was_deleted_and_its_draft_has_a_way_on(
    tab: Page, served: Served
) -> None:
    async def pass_on(socket: WebSocketRoute) -> None:
        # The close of a regular check does not arrive.
        socket.connect_to_server().on_close(lambda *_: None)

    await tab.route_web_socket(re.compile("/ws/"), pass_on)
    await start_chat(tab, served, "Hello")
    await ended(tab, 1)
    chat, gone, text = tab.url, tab.locator("#gone"), tab.locator("#text")
    await text.fill("Not sent yet")
    file = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"Milk"}
    await tab.locator("#file-input").set_input_files(file)  # type: ignore[arg-type]
    await expect(tab.locator("#waiting [data-file]")).to_have_count(1)
    await expect(gone).to_be_hidden()
    other = await tab.context.new_page()
    await delete(other, chat)
    await expect(gone).to_be_visible()
    await expect(gone).to_contain_text("This chat was deleted, perhaps in another tab.")
    await expect(text).to_have_value("Not sent yet")

    # It comes back, here as elsewhere.
    await other.get_by_role("button", name="Undo").click()
    await other.wait_for_url(CHAT)
    await tab.evaluate("window.dispatchEvent(new Event('focus'))")
    await expect(gone).to_be_hidden()
    await delete(other, chat)
    await gone.get_by_role("button", name="Bring back").click()
    await tab.wait_for_load_state()
    await expect(gone).to_be_hidden()
    await expect(text).to_have_value("Not sent yet")

    # Or what was written goes along to a new chat, below what is written there already.
    await other.goto(f"{served.url}/c/new/")
    await other.fill("#text", "For a new chat")
    await delete(other, chat)
    onward = gone.get_by_role("link", name="Go on in a new chat")
    # What cannot go along stays on its page.
    await tab.evaluate("full = Storage.prototype.setItem; Storage.prototype.setItem = null")
    async with tab.context.expect_page() as opened:
        await onward.click()
    await (await opened.value).close()
    await expect(text).to_have_value("Not sent yet")
    await tab.evaluate("() => { Storage.prototype.setItem = full }")
    await onward.click()
    await tab.wait_for_url("**/c/new/")
    await expect(text).to_have_value("For a new chat\n\nNot sent yet")
    await expect(tab.locator("#waiting [data-file]")).to_have_count(1)
    await text.press("Enter")
    await tab.wait_for_url(CHAT)
    await expect(await ended(tab, 1)).to_contain_text("notes.txt")
    await other.close()


async def test_who_deletes_the_chat_on_its_own_page_is_led_on_without_a_word(
    tab: Page, served: Served
) -> None:
    await start_chat(tab, served, "Hello")
    await ended(tab, 1)
    await tab.evaluate(
        "document.addEventListener('agentweb:gone', () => setTimeout(() => {"
        " if (!document.querySelector('#gone').hidden) sessionStorage.told = 'yes'; }))"
    )
    await tab.get_by_role("link", name="More").click()
    await tab.get_by_role("button", name="Delete").click()
    await tab.wait_for_url("**/c/new/")
    assert await tab.evaluate("sessionStorage.told ?? ''") == ""
    await say(tab, "Another one")
    await tab.wait_for_url(CHAT)


async def test_a_chat_that_was_erased_says_so_in_place_and_its_draft_has_a_way_on(
    tab: Page, served: Served
) -> None:
    await start_chat(tab, served, "Hello")
    await ended(tab, 1)
    chat, gone = tab.url, tab.locator("#gone")
    await tab.fill("#text", "Not sent yet")
    other = await tab.context.new_page()
    await delete(other, chat)
    await expect(gone).to_be_visible()
    await other.goto(f"{served.url}/trash/")
    await other.get_by_text("Erase now").first.click()
    await other.locator("details[open]").get_by_role("button").first.click()
    await expect(other.locator("#notice")).to_contain_text("was erased")
    await other.close()
    await gone.get_by_role("button", name="Bring back").click()
    await expect(gone).to_contain_text("It was erased since, and nothing brings it back.")
    await expect(gone.get_by_role("button", name="Bring back")).to_have_count(0)
    await expect(tab.locator("#composer-error")).to_be_empty()
    assert tab.url == chat
    await gone.get_by_role("link", name="Go on in a new chat").click()
    await tab.wait_for_url("**/c/new/")
    await expect(tab.locator("#text")).to_have_value("Not sent yet")


async def test_the_list_of_a_tab_that_comes_to_the_front_is_the_newest(
    tab: Page, served: Served
) -> None:
    await start_chat(tab, served, "One of two")
    await ended(tab, 1)
    first = urlsplit(tab.url).path
    await start_chat(tab, served, "Two of two")
    await ended(tab, 1)
    mine, theirs = tab.locator("#rows .row[aria-current]"), tab.locator(f'#rows [href="{first}"]')
    await expect(theirs).to_have_count(1)
    other = await tab.context.new_page()
    await delete(other, f"{served.url}{first}")
    await expect(theirs).to_have_count(1)
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(urlsplit(request.url).path))
    # Not while somebody is in it, whose click would be lost.
    await mine.focus()
    await tab.evaluate("window.dispatchEvent(new Event('focus'))")
    await tab.locator("#text").focus()
    await tab.evaluate("window.dispatchEvent(new Event('focus'))")
    await expect(theirs).to_have_count(0)
    assert asked.count("/c/list/") == 1
    await expect(mine).to_have_attribute("aria-current", "page")
    await mine.locator("xpath=..").locator(".row-more").click()
    await expect(tab.locator("#menu")).to_contain_text("Rename")
    await tab.keyboard.press("Escape")
    await tab.locator("#text").click()
    # The chat of this tab goes, too.
    await delete(other, tab.url)
    await expect(tab.locator("#gone")).to_be_visible()
    await expect(mine).to_have_count(0)
    await other.close()


async def test_a_list_that_the_tab_itself_changed_is_renewed_and_one_that_is_new_stays(
    tab: Page, served: Served
) -> None:
    await start_chat(tab, served, "One of two")
    await ended(tab, 1)
    first = urlsplit(tab.url).path
    await start_chat(tab, served, "Two of two")
    await ended(tab, 1)
    theirs = tab.locator(f'#rows [href="{first}"]')
    # Nothing is replaced where nothing changed: a screen reader may be in it.
    await theirs.evaluate("node => { node.isOld = true }")
    async with tab.expect_response("**/c/list/") as answered:
        await tab.evaluate("window.dispatchEvent(new Event('focus'))")
    await (await answered.value).finished()
    assert await theirs.evaluate("node => new Promise(r => setTimeout(() => r(node.isOld)))")
    await theirs.locator("xpath=..").locator(".row-more").click()
    await tab.locator("#menu").get_by_role("button", name="Delete").click()
    await expect(theirs).to_have_count(0)
    other = await tab.context.new_page()
    await other.goto(f"{served.url}/trash/")
    await other.get_by_role("button", name="Bring back").first.click()
    await other.wait_for_url(f"**{first}")
    await other.close()
    await tab.locator("#text").click()
    await tab.evaluate("window.dispatchEvent(new Event('focus'))")
    await expect(theirs).to_have_count(1)
