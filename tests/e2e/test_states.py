"""What a person sees when something is not as it should be, and that nothing they wrote is lost."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.async_api import Page, Route, WebSocketRoute, expect

from tests.e2e import served as app
from tests.e2e.conftest import Watch, observe
from tests.e2e.people import CHAT, NAME, PASSWORD, ended, say, set_up, start_chat, turn
from tests.e2e.served import Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
HIDDEN = """
  window.isAway = false;
  Object.defineProperty(document, "hidden", { get: () => window.isAway });
  window.notes = [];
  window.Notification = class {
    static permission = "granted";
    static requestPermission() { return Promise.resolve("granted"); }
    constructor(title, options) { window.notes.push([title, options.body]); }
    addEventListener() {}
  };
"""


@pytest.fixture(scope="module")
def titled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Give an app that names its conversations."""
    running = app.fork(
        tmp_path_factory.mktemp("states") / "data", AGENTWEB_TITLE_MODEL="claude-haiku-5-5"
    )
    yield running
    running.stop()


def rows(served: Served, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(served.database, timeout=60)) as database:
        found = database.execute(sql).fetchall()
        database.commit()
    return found


def prompts(served: Served) -> int:
    found = rows(served, "SELECT count(*) FROM conversations_message WHERE kind = 'prompt'")
    return int(str(found[0][0]))


async def log_in_here(page: Page) -> None:
    dialog = page.locator("#session")
    await expect(dialog).to_be_visible()
    await dialog.locator("[name=username]").fill(NAME)
    await dialog.locator("[name=password]").fill(PASSWORD)
    await dialog.get_by_role("button", name="Log in").click()
    await expect(dialog).to_be_hidden()


async def test_the_model_names_the_chat_and_its_cost_is_told(page: Page, titled: Served) -> None:
    await set_up(page, titled)
    await page.goto(f"{titled.url}/c/new/")
    await expect(page.get_by_text("Your chats will be listed here.")).to_be_visible()
    await expect(page.get_by_role("link", name="Bring them along")).to_be_visible()
    await start_chat(page, titled, "Please explain how sourdough bread rises overnight")
    await ended(page, 1)
    named = "Explain how sourdough bread rises overnight"
    await expect(page.locator("#title")).to_have_text(named)
    await expect(page.locator(".row[aria-current] .row-title")).to_have_text(named)
    await expect(page).to_have_title(f"{named} · agentweb")
    await page.locator("#meter summary").click()
    await expect(page.locator("#meter .panel")).to_contain_text(re.compile(r"\$[\d.]+ · 2 calls"))


async def test_what_cannot_leave_waits_and_goes_once(
    page: Page, titled: Served, watch: Watch
) -> None:
    await set_up(page, titled)
    await page.context.set_offline(True)
    await page.goto("about:blank")
    await page.context.set_offline(False)
    await start_chat(page, titled, "Hello")
    await ended(page, 1)
    outbox = page.locator("#outbox")

    async def lose_the_answer(route: Route) -> None:
        await route.fetch()
        await route.abort()

    # It arrives, and nobody learns of it.
    before = prompts(titled)
    await page.route("**/send/", lose_the_answer, times=1)
    await say(page, "Did this arrive?")
    await ended(page, 2)
    await expect(outbox).to_be_hidden()
    assert prompts(titled) == before + 1
    # Nothing arrives, and the composer goes on.
    await page.context.set_offline(True)
    await say(page, "The first of two")
    await expect(outbox).to_contain_text("Not sent yet. It goes when the connection is back.")
    await expect(page.locator("#text")).to_have_value("")
    await expect(page.locator("#connection")).to_have_text("Offline")
    await say(page, "The second of two")
    await outbox.get_by_role("button", name="Take it back").last.click()
    await expect(page.locator("#text")).to_have_value("The second of two")
    await page.context.set_offline(False)
    await expect(await ended(page, 3)).to_contain_text("The first of two")
    await expect(outbox).to_be_hidden()
    await expect(page.locator("#connection")).to_be_hidden()
    await expect(page.locator("#text")).to_have_value("The second of two")
    assert prompts(titled) == before + 2
    watch.errors.clear()


async def test_a_first_message_waits_too(page: Page, titled: Served, watch: Watch) -> None:
    await set_up(page, titled)
    await page.goto(f"{titled.url}/c/new/")
    await page.context.set_offline(True)
    await say(page, "Written in a tunnel")
    await expect(page.locator("#outbox")).to_contain_text("Written in a tunnel")
    await page.context.set_offline(False)
    await page.wait_for_url(CHAT)
    await expect(await ended(page, 1)).to_contain_text("Written in a tunnel")
    await page.goto(f"{titled.url}/c/new/")
    await expect(page.locator("#text")).to_have_value("")
    watch.errors.clear()


async def test_a_session_that_ends_costs_nothing_that_was_written(
    page: Page, titled: Served, watch: Watch
) -> None:
    await set_up(page, titled)
    await start_chat(page, titled, "Hello")
    await ended(page, 1)
    rows(titled, "DELETE FROM conversations_session")
    await expect(page.locator("#connection")).to_contain_text("You are logged out.", timeout=60_000)
    before = prompts(titled)
    await say(page, "Still with me?")
    await expect(page.locator("#session")).to_be_visible()
    await page.get_by_role("button", name="Not now").click()
    await expect(page.locator("#composer-error")).to_contain_text("Not sent")
    await expect(page.locator("#text")).to_have_value("Still with me?")
    await page.locator("#text").press("Enter")
    await log_in_here(page)
    await expect(await ended(page, 2)).to_contain_text("Still with me?")
    await expect(page.locator("#connection")).to_be_hidden()
    await expect(page.locator("#text")).to_have_value("")
    assert prompts(titled) == before + 1
    # Another tab logs in anew: the old token is replaced without a word.
    other = await page.context.new_page()
    observe(other, watch)
    await other.goto(f"{titled.url}/c/new/")
    await other.locator("form[action='/accounts/logout/'] button").click()
    await other.wait_for_url("**/accounts/login/**")
    await other.fill("[name=username]", NAME)
    await other.fill("[name=password]", PASSWORD)
    await other.click("main button[type=submit]")
    await other.wait_for_url("**/c/**")
    await other.close()
    await say(page, "And now?")
    await expect(await ended(page, 3)).to_contain_text("And now?")
    # A first message, when the session is over.
    await page.goto(f"{titled.url}/c/new/")
    rows(titled, "DELETE FROM conversations_session")
    await say(page, "A new beginning")
    await log_in_here(page)
    await page.wait_for_url(CHAT)
    await expect(await ended(page, 1)).to_contain_text("A new beginning")
    watch.errors.clear()


async def test_waiting_can_be_cancelled_and_endings_say_what_they_mean(
    page: Page, titled: Served
) -> None:
    await set_up(page, titled)
    await start_chat(page, titled, "Hello emulator:fault=rate_limited:40")
    status = turn(page, 1).locator(".status")
    await expect(status).to_contain_text("Attempt 2 of 4")
    await status.get_by_role("button", name="Cancel").click()
    await expect(await ended(page, 1)).to_contain_text("Stopped")
    await say(page, "Hello emulator:fault=max_tokens")
    section = await ended(page, 2)
    await expect(section.locator(".chip")).to_have_text("Cut at the length limit")
    await expect(section.locator(".hint")).to_contain_text("the rest can be asked for")
    await say(page, "Hello emulator:fault=overflow")
    section = await ended(page, 3)
    await expect(section.locator(".chip")).to_have_text("Too long for the model")
    largest = section.locator(".largest")
    await expect(largest.locator("li").first).to_contain_text("tokens")
    await largest.get_by_role("button", name="Pin").first.click()
    await expect(largest.get_by_role("button", name="Pinned")).to_be_visible()
    await expect(largest.get_by_role("link", name="Open the inspector")).to_be_visible()


async def test_a_budget_that_is_used_up_says_when_it_comes_back(page: Page, titled: Served) -> None:
    await set_up(page, titled)
    ada = f"User.objects.get(username='{NAME}')"
    titled.manage(
        "shell",
        "-c",
        f"from tests.support.people_and_turns import limited, User; limited({ada}, 18_000)",
    )
    await start_chat(page, titled, "Hello")
    section = await ended(page, 1)
    await expect(section.locator(".chip")).to_have_text("Over budget")
    await expect(section.locator(".error")).to_contain_text("budget")
    await expect(section.locator(".hint")).to_contain_text("Your message is kept.")
    rows(titled, "DELETE FROM conversations_budgetwindow")
    rows(titled, "DELETE FROM conversations_budget")
    await section.get_by_role("button", name="Try again").click()
    await expect(await ended(page, 2)).to_contain_text("built-in emulator")


async def test_a_page_that_takes_itself_for_logged_out_is_back_with_what_it_sends(
    page: Page, titled: Served, watch: Watch
) -> None:
    """Another tab logged in just as this one was told of the end, and its cookie came first."""
    await set_up(page, titled)
    await start_chat(page, titled, "Hello")
    await ended(page, 1)
    address = await page.locator("#session").get_attribute("data-url")
    await page.route(f"**{address}?*", lambda route: route.abort(), times=1)
    await page.evaluate("document.dispatchEvent(new Event('agentweb:out'))")
    await expect(page.locator("#connection")).to_contain_text("You are logged out.")
    await say(page, "Are you there?")
    await expect(await ended(page, 2)).to_contain_text("Are you there?")
    await expect(page.locator("#connection")).to_be_hidden()
    watch.errors.clear()


async def test_an_answer_that_ends_unseen_marks_its_tab(page: Page, titled: Served) -> None:
    await page.add_init_script(HIDDEN)
    await set_up(page, titled)
    await page.goto(f"{titled.url}/settings/chat/")
    await page.get_by_label("Notify me when an answer is done").check()
    async with page.expect_navigation():
        await page.get_by_role("button", name="Save").click()
    await page.add_init_script("window.isAway = true")
    await start_chat(page, titled, "Answer in 300 words")
    await ended(page, 1)
    await expect(page).to_have_title(re.compile(r"^● "))
    assert await page.evaluate("window.notes.length") == 1
    await page.evaluate(
        "window.isAway = false; document.dispatchEvent(new Event('visibilitychange'))"
    )
    await expect(page).not_to_have_title(re.compile("●"))


async def test_settings_count_at_once_and_on_every_page(page: Page, titled: Served) -> None:
    await set_up(page, titled)
    await page.goto(f"{titled.url}/c/list/")
    await page.keyboard.press("g")
    await page.keyboard.press("s")
    await page.wait_for_url("**/settings/appearance/")
    await page.get_by_label("Dark").check()
    await page.get_by_label("Larger").check()
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Saved.")).to_be_visible()
    ground = "getComputedStyle(document.body).backgroundColor"
    assert await page.evaluate(ground) == "rgb(18, 22, 20)"
    assert await page.evaluate("getComputedStyle(document.documentElement).fontSize") == "20px"
    await page.get_by_label("Light").check()
    await page.get_by_label("Normal").check()
    async with page.expect_navigation():
        await page.get_by_role("button", name="Save").click()
    await page.goto(f"{titled.url}/settings/chat/")
    await page.get_by_label("begins a line; Ctrl").check()
    async with page.expect_navigation():
        await page.get_by_role("button", name="Save").click()
    await page.goto(f"{titled.url}/c/new/")
    await page.fill("#text", "One")
    await page.locator("#text").press("Enter")
    await page.keyboard.type("two")
    await expect(page.locator("#text")).to_have_value("One\ntwo")
    await page.keyboard.press("Control+Enter")
    await page.wait_for_url(CHAT)
    await ended(page, 1)
    await page.locator("#transcript").press("?")
    await page.get_by_label("Use keyboard shortcuts").uncheck()
    await page.get_by_role("button", name="Close").click()
    await expect(page.locator("#shortcuts")).to_be_hidden()
    await page.reload()
    await page.locator("#transcript").press("?")
    await expect(page.locator("#shortcuts")).to_be_hidden()


async def test_a_draft_is_one_for_all_tabs(page: Page, served: Served, watch: Watch) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Hello")
    await ended(page, 1)
    other = await page.context.new_page()
    observe(other, watch)
    await other.goto(page.url)
    await page.fill("#text", "Half a thought")
    await expect(other.locator("#text")).to_have_value("Half a thought")
    await other.fill("#text", "A whole thought")
    await page.reload()
    await expect(page.locator("#text")).to_have_value("A whole thought")
    await page.locator("#text").press("Enter")
    await ended(other, 2)
    await expect(other.locator("#text")).to_have_value("")
    await say(other, "Another one")
    await expect(await ended(page, 3)).to_contain_text("Another one")


async def test_a_way_back_does_not_bring_an_old_message_id(page: Page, served: Served) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Hello")
    await ended(page, 1)
    await say(page, "The first one")
    await ended(page, 2)
    await page.goto(f"{served.url}/settings/chat/")
    await page.go_back()
    await say(page, "The second one")
    await expect(await ended(page, 3)).to_contain_text("The second one")


async def test_a_lost_socket_is_told_and_the_composer_goes_on(page: Page, served: Served) -> None:
    await set_up(page, served)
    sockets: list[WebSocketRoute] = []
    here = asyncio.Event()
    here.set()

    async def pass_on(socket: WebSocketRoute) -> None:
        await here.wait()
        sockets.append(socket)
        socket.connect_to_server()

    await page.route_web_socket(re.compile("/ws/"), pass_on)
    await start_chat(page, served, "Hello")
    await ended(page, 1)
    here.clear()
    await sockets[-1].close(code=1012)
    await expect(page.locator("#connection")).to_have_text("Reconnecting…")
    await say(page, "Do you hear me?")
    await expect(page.locator("#text")).to_have_value("")
    here.set()
    await expect(await ended(page, 2)).to_contain_text("Do you hear me?")
    await expect(page.locator("#connection")).to_be_hidden()


async def test_the_browser_offers_to_install_the_site(page: Page, served: Served) -> None:
    await set_up(page, served)
    browser = await page.context.new_cdp_session(page)
    read = await browser.send("Page.getAppManifest")
    assert (read["errors"], read["manifest"]["startUrl"]) == ([], f"{served.url}/")
    found = (await browser.send("Page.getInstallabilityErrors"))["installabilityErrors"]
    # A test's own context is a private window.
    assert {error["errorId"] for error in found} <= {"in-incognito"}
