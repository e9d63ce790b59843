"""A connection that is lost, in a real browser: what the pill says, and a page that is whole again.

Servers are killed and paused by their process ids. Where a page would wait for half a minute its
clock is put forward.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.async_api import Locator, Page, Route, WebSocketRoute, expect

from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer
from tests.e2e import served as app
from tests.e2e.people import ended, say, start_chat, turn
from tests.e2e.served import Served
from tests.e2e.talks import SCRIPT, answer_begun, shown, stored

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
PHONE = {"width": 390, "height": 844}
LEAVES = '<div id="restarting" hidden data-within="10" hx-swap-oob="outerHTML"></div>'
#: How often the page was told something; the beat of the server is not told on.
COUNT = """() => {
  window.told = 0;
  document.addEventListener("htmx:wsAfterMessage", () => { window.told += 1; });
}"""

#: Writes down what is said above the message box.
LISTEN = """() => {
  window.heard = [];
  const node = document.querySelector("#composer-error");
  new MutationObserver(() => window.heard.push(node.textContent))
    .observe(node, { childList: true });
}"""


async def comes(page: Page, expression: str) -> None:
    """Wait until a script's expression is true; asked from outside, for the page runs no text."""
    async with asyncio.timeout(60):
        while not await page.evaluate(expression):
            await asyncio.sleep(0.05)


@pytest.fixture(scope="module")
def api() -> Iterator[EmulatorServer]:
    """A model of about 3,000 characters in six seconds."""
    with server.start(pace=0.02, script=SCRIPT) as running:
        yield running


@pytest.fixture(scope="module")
def settings(api: EmulatorServer) -> dict[str, str]:
    return {
        "ANTHROPIC_API_KEY": "sk-slow",
        "ANTHROPIC_BASE_URL": api.url,
        "AGENTWEB_TITLE_MODEL": "off",
    }


@pytest.fixture(scope="module")
def served(settings: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    running = app.start(tmp_path_factory.mktemp("connection") / "data", **settings)
    yield running
    if running.process.poll() is None:
        running.process.send_signal(signal.SIGCONT)
    running.stop()


def pill(page: Page) -> Locator:
    return page.locator("#connection")


async def fits(page: Page) -> bool:
    """Say whether nothing stands out at the side."""
    return bool(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


async def test_a_killed_server_takes_nothing_along_that_it_had_taken(
    tab: Page, served: Served, settings: dict[str, str]
) -> None:
    await start_chat(tab, served, "Write a long one emulator:pace=0.1")
    other = await tab.context.new_page()
    await other.goto(tab.url)
    await other.set_viewport_size(PHONE)  # type: ignore[arg-type]
    for page in (tab, other):
        await answer_begun(page)
    os.kill(served.process.pid, signal.SIGKILL)
    served.process.wait(timeout=60)
    for page in (tab, other):
        await expect(pill(page)).to_have_text("Reconnecting…")
        assert await fits(page)
    kept = await turn(tab, 1).locator(".answer .prose").first.inner_text()
    assert kept.strip()
    await say(tab, "Are you back?")
    outbox = tab.get_by_text("It goes when the connection is back")
    await expect(outbox).to_be_visible()
    again = app.start(served.data, port=served.port, **settings)
    served.process = again.process
    for page in (tab, other):
        await expect(pill(page)).to_be_hidden(timeout=60_000)
        await expect(await ended(page, 1)).to_contain_text("Interrupted. Partial answer kept.")
        await expect(await ended(page, 2)).to_contain_text("Yes.")
        assert await page.locator(".turn").count() == 2
        for number in (1, 2):
            assert await shown(page, number) == await stored(page, number)
    await expect(outbox).to_have_count(0)
    with closing(sqlite3.connect(served.database, timeout=60)) as rows:
        found = rows.execute("SELECT content FROM conversations_message WHERE kind = 'prompt'")
        assert [("Are you back?" in text) for (text,) in found].count(True) == 1


async def test_a_frozen_server_is_given_up_and_met_again_when_it_goes_on(
    tab: Page, served: Served
) -> None:
    await tab.clock.install()
    await start_chat(tab, served, "Write a long one, frozen")
    await answer_begun(tab)
    served.process.send_signal(signal.SIGSTOP)
    try:
        await tab.clock.fast_forward(20_000)
        await expect(pill(tab)).to_be_hidden()
        await tab.clock.fast_forward(20_000)
        await expect(pill(tab)).to_have_text("Reconnecting…")
    finally:
        served.process.send_signal(signal.SIGCONT)
    await expect(pill(tab)).to_be_hidden(timeout=60_000)
    await expect(await ended(tab, 1)).to_contain_text("the last word")
    assert await shown(tab) == await stored(tab)


async def test_every_way_to_lose_a_connection_has_words_and_a_way_on(
    tab: Page, served: Served
) -> None:
    sockets: list[WebSocketRoute] = []

    async def pass_on(socket: WebSocketRoute) -> None:
        sockets.append(socket)
        server = socket.connect_to_server()
        # The server's own signs of life, which come at any moment, are left out.
        server.on_message(lambda said: None if "<!-- alive" in str(said) else socket.send(said))
        # A sign of life, which is for all sockets, may come before the snapshot of one.
        socket.send("<!-- alive -->")

    await tab.route_web_socket(re.compile("/ws/"), pass_on)
    await start_chat(tab, served, "Hello")
    await ended(tab, 1)
    await tab.evaluate(COUNT)

    async def lose(code: int, words: str) -> None:
        await sockets[-1].close(code=code)
        await expect(pill(tab)).to_have_text(words)

    async def look() -> None:
        """Look at the tab again."""
        await tab.evaluate("window.dispatchEvent(new Event('focus'))")

    # A sign of life is no news.
    sockets[-1].send("<!-- alive -->")
    sockets[-1].send('<div id="restarting" hidden hx-swap-oob="outerHTML"></div>')
    await comes(tab, "window.told === 1")

    # Cut off as too slow: it comes back by itself.
    await tab.evaluate("Math.random = () => 0.5")
    await lose(4008, "Reconnecting…")
    await expect(pill(tab)).to_be_hidden(timeout=60_000)
    # The server restarts: a page that nobody looks at takes its time.
    sockets[-1].send("<!-- alive 1 -->")
    sockets[-1].send(LEAVES)
    await comes(tab, "document.querySelector('#restarting').dataset.within === '10'")
    await lose(1012, "The server restarts. Reconnecting…")
    await look()
    await expect(pill(tab)).to_be_hidden()
    assert "&left=1" in sockets[-1].url
    assert "left=" not in sockets[-2].url
    assert await tab.evaluate("({...document.querySelector('#restarting').dataset})") == {}
    # Too many tabs: nothing is tried until somebody looks.
    count = len(sockets)
    await lose(4429, "You have too many tabs open. Close some, then come back to this one.")
    await tab.set_viewport_size(PHONE)  # type: ignore[arg-type]
    assert await fits(tab)
    await tab.set_viewport_size({"width": 1100, "height": 700})
    assert len(sockets) == count
    await look()
    await expect(pill(tab)).to_be_hidden()
    # The page ends with a turn of another history: it is built anew.
    await tab.reload()
    await expect(tab.locator("#history .turn")).to_have_count(1)
    before = await tab.locator("#history").get_attribute("data-mark")
    await tab.evaluate(
        "document.querySelector('#history').dataset.mark = 'x';"
        "window.dispatchEvent(new Event('online'))"
    )
    await expect(tab.locator("#history")).to_have_attribute("data-mark", str(before))
    await expect(tab.locator(".turn")).to_have_count(1)
    assert await shown(tab) == await stored(tab)
    # Deleted: nothing is tried until somebody looks, and finds it brought back.
    count = len(sockets)
    await sockets[-1].close(code=4404)
    await expect(tab.locator("#gone")).to_be_visible()
    await expect(pill(tab)).to_be_hidden()
    await tab.evaluate("window.dispatchEvent(new Event('online'))")
    await say(tab, "Still, something can be sent")
    await expect(tab.locator("#text")).to_have_value("")
    assert len(sockets) == count
    await look()
    await expect(tab.locator("#gone")).to_be_hidden()
    assert len(sockets) == count + 1


async def test_a_handshake_that_is_refused_is_asked_why(tab: Page, served: Served) -> None:
    """A chat that was deleted elsewhere, while this page had no connection."""
    await start_chat(tab, served, "Hello")
    await ended(tab, 1)

    other = await tab.context.new_page()
    await other.goto(tab.url)
    await tab.evaluate("Math.random = () => 0.1")
    await tab.route_web_socket(re.compile("/ws/"), lambda socket: socket.close(code=1011))
    await tab.evaluate("window.dispatchEvent(new Event('online'))")
    await expect(pill(tab)).to_have_text(re.compile("Reconnecting…|No live connection"))
    with closing(sqlite3.connect(served.database, timeout=60)) as rows, rows:
        rows.execute("UPDATE conversations_conversation SET deleted_at = CURRENT_TIMESTAMP")
    for page in (tab, other):
        await expect(page.locator("#gone")).to_be_visible()
        await expect(pill(page)).to_be_hidden()


async def test_what_does_not_reach_the_server_is_called_by_its_name(
    tab: Page, served: Served
) -> None:
    await tab.set_viewport_size({"width": 1300, "height": 800})
    await start_chat(tab, served, "Hello")
    section = await ended(tab, 1)
    said, drawer = tab.locator("#composer-error"), tab.locator("#inspector")
    await tab.context.set_offline(True)
    await expect(pill(tab)).to_have_text("Offline")
    await tab.get_by_role("link", name="More").click()
    await expect(said).to_have_text("That did not work. Try again.")
    await section.get_by_role("link", name="Edit").click()
    await tab.get_by_role("link", name="Context inspector").click()
    lost = drawer.get_by_role("alert")
    await expect(lost).to_contain_text("The inspector could not be loaded.")
    await expect(said).to_have_text("That did not work. Try again.")
    await tab.context.set_offline(False)
    await expect(pill(tab)).to_be_hidden()
    await expect(drawer).to_contain_text("Nothing has been reduced.")
    await expect(lost).to_have_count(0)
    # Other words for a message are one.
    await section.get_by_role("link", name="Edit").click()
    editor = section.locator("textarea")
    await editor.fill("Other words")
    await tab.context.set_offline(True)
    await editor.press("Control+Enter")
    await expect(said).to_have_text("Not sent. Your message is kept; try again.")
    await tab.context.set_offline(False)
    await expect(editor).to_have_value("Other words")


async def test_a_stop_that_did_not_leave_is_asked_for_again(tab: Page, served: Served) -> None:
    await start_chat(tab, served, "Write a long one to stop emulator:pace=0.1")
    await answer_begun(tab)
    await tab.evaluate(LISTEN)
    await tab.route("**/stop/", lambda route: route.abort(), times=1)
    await tab.locator("#stop").click()
    section = await ended(tab, 1)
    await expect(section).to_contain_text("Stopped")
    assert "the last word" not in await section.inner_text()
    assert await shown(tab) == await stored(tab)
    told = "Not stopped yet. It stops when the connection is back."
    assert set(await tab.evaluate("heard")) - {""} == {told}


async def test_esc_in_the_message_box_stops_without_shortcuts_too(
    tab: Page, served: Served
) -> None:
    await start_chat(tab, served, "Write a long one to stop emulator:pace=0.1")
    await answer_begun(tab)
    await tab.locator("[data-open='shortcuts']").first.click()
    async with tab.expect_response("**/settings/shortcuts/"):
        await tab.locator("#use-shortcuts").uncheck()
    await tab.get_by_role("button", name="Close").click()
    await tab.locator("#title").click()
    await tab.keyboard.press("Escape")
    await tab.focus("#text")
    await expect(tab.locator("#stop")).to_be_visible()
    await tab.keyboard.press("Escape")
    await expect(await ended(tab, 1)).to_contain_text("Stopped")
    await tab.locator("[data-open='shortcuts']").first.click()
    async with tab.expect_response("**/settings/shortcuts/"):
        await tab.locator("#use-shortcuts").check()


#: A network that lets no websocket through: every handshake ends at an address that has none.
NO_WEBSOCKET = """
  window.WebSocket = class extends WebSocket {
    constructor(address) { super(String(address).replace("/ws/", "/nothing/")); }
  };
"""

#: Asks over HTTP; what comes back is written down.
POLL = """() => {
  window.heard = [];
  const given = { read: () => ({}), onWebSocket() {} };
  window.polled = new window.agentweb.PolledSocket("ws://127.0.0.1/", "/polled", "beat", given);
  window.polled.addEventListener("message", ({ data }) => window.heard.push(data));
}"""


async def test_a_page_is_told_everything_where_no_websocket_comes_through(
    tab: Page, served: Served
) -> None:
    await tab.add_init_script(NO_WEBSOCKET)
    await start_chat(tab, served, "Write a long one, polled")
    await expect(pill(tab)).to_contain_text("No live connection", timeout=30_000)
    await answer_begun(tab)
    await ended(tab, 1)
    await say(tab, "Are you back?")
    await expect(await ended(tab, 2)).to_contain_text("Yes.")
    for number in (1, 2):
        assert await shown(tab, number) == await stored(tab, number)
    async with tab.expect_response(re.compile("/events/")) as found:
        pass
    assert (await found.value).status == 204


async def test_an_older_answer_takes_no_newer_ones_place(tab: Page, served: Served) -> None:
    """A page that asks over HTTP asks again while the answer to its last request is on its way."""
    arrives, asked = asyncio.Event(), 0

    async def answer(route: Route) -> None:
        nonlocal asked
        asked += 1
        text = ("old", "new")[min(asked, 2) - 1]
        if text == "old":
            await arrives.wait()
        await route.fulfill(body=text)

    await tab.route("**/polled?*", answer)
    await tab.goto(f"{served.url}/c/new/")
    async with tab.expect_request("**/polled?*"):
        await tab.evaluate(POLL)
    await tab.evaluate("polled.poll()")
    arrives.set()
    await comes(tab, "heard.includes('new')")
    await comes(tab, "heard.includes('old')")
    assert [one for one in await tab.evaluate("heard") if one != "beat"] == ["old", "new"]
