"""An answer on its way survives what readers and networks do; every tab ends with what is stored.

One app with a slow scripted model. What is compared is the page: each turn's DOM in a tab that
lived through it, with the same turn freshly loaded.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.async_api import Error, Page, expect

from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer
from tests.e2e import served as app
from tests.e2e.conftest import Watch, observe
from tests.e2e.people import ended, start_chat, turn
from tests.e2e.people import say as send
from tests.e2e.served import Served
from tests.e2e.talks import SCRIPT, answer_begun, shown, stored

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture(scope="module")
def api() -> Iterator[EmulatorServer]:
    """A model of about 3,000 characters in four seconds."""
    with server.start(pace=0.012, script=SCRIPT) as running:
        yield running


@pytest.fixture(scope="module")
def served(api: EmulatorServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    running = app.fork(
        tmp_path_factory.mktemp("realtime") / "data",
        ANTHROPIC_API_KEY="sk-slow",
        ANTHROPIC_BASE_URL=api.url,
        AGENTWEB_TITLE_MODEL="off",
    )
    yield running
    running.stop()


async def test_two_tabs_end_with_what_is_stored(tab: Page, served: Served) -> None:
    watch = Watch()
    await start_chat(tab, served, "Write a long one")
    other = await tab.context.new_page()
    observe(other, watch)
    await answer_begun(tab)
    await other.goto(tab.url)
    for page in (tab, other):
        await ended(page, 1)
    fresh = await stored(tab)
    assert "the last word" in fresh
    assert await shown(tab) == fresh
    assert await shown(other) == fresh
    assert watch.errors == []
    await other.close()


async def test_fifty_reloads_in_mid_answer_change_nothing(tab: Page, served: Served) -> None:
    await start_chat(tab, served, "Write a long one, reloaded")
    address, reloads = tab.url, 0
    for _ in range(50):
        # As fast as the page is there at all: the next reload cuts its socket and its scripts.
        await tab.goto(address, wait_until="commit")
        reloads += 1
    await ended(tab, 1)
    assert reloads == 50
    assert await tab.locator(".turn").count() == 1
    assert await shown(tab) == await stored(tab)
    assert "the last word" in await shown(tab)


async def test_a_lost_network_in_mid_answer_and_around_a_send(tab: Page, served: Served) -> None:
    await start_chat(tab, served, "Write a long one, offline")
    await answer_begun(tab)
    await tab.context.set_offline(True)
    await _socket_is_cut(tab)
    await asyncio.sleep(1)
    await tab.context.set_offline(False)
    await ended(tab, 1)
    assert await shown(tab) == await stored(tab)

    await tab.context.set_offline(True)
    await send(tab, "Are you there?" + "\nI am." * 8)
    await expect(tab.get_by_text("It goes when the connection is back")).to_be_visible()
    # It stands below the answer, and what has no room is scrolled to.
    await _is_at_the_end(tab)
    bubble = tab.locator(".outbox-row .bubble")
    await bubble.hover()
    async with asyncio.timeout(60):
        while not await bubble.evaluate("bubble => bubble.scrollTop"):
            await tab.mouse.wheel(0, 40)
            await tab.wait_for_timeout(30)
    await tab.context.set_offline(False)
    await ended(tab, 2)
    await expect(tab.get_by_text("It goes when the connection is back")).to_have_count(0)
    assert await tab.locator(".turn").count() == 2
    assert await shown(tab, 2) == await stored(tab, 2)


async def _socket_is_cut(tab: Page) -> None:
    """An open socket survives Chromium's offline switch; end it as the network would."""
    await tab.evaluate(
        """() => {
          const node = document.querySelector("[ws-connect]");
          const inside = node["htmx-internal-data"];
          inside.webSocket.socket.dispatchEvent(new CloseEvent("close", { code: 1006 }));
        }"""
    )


#: How much of the page is below what is seen.
_GAP = "document.scrollingElement.scrollHeight - innerHeight - scrollY"
_SHIFTS = """() => {
  window.shifts = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries())
      for (const source of entry.sources) {
        const node = source.node?.nodeType === 1 ? source.node : source.node?.parentElement;
        const place = node?.closest(".tail, .status, .dock, .thinking, .foot") ? "moving" : "done";
        window.shifts.push({ place, value: entry.value, moved:
          Math.abs(source.currentRect.top - source.previousRect.top),
          name: `${node?.localName}.${node?.className}` });
      }
  }).observe({ type: "layout-shift", buffered: true });
}"""


async def test_a_reader_who_scrolled_up_is_not_moved(tab: Page, served: Served) -> None:
    await start_chat(tab, served, "Write a long one to read")
    await answer_begun(tab)
    await expect(tab.locator("#turn-1-r1-done")).to_contain_text("Part 1", timeout=60_000)
    await tab.evaluate(_SHIFTS)
    # In one step of the page: between two of them the answer may be swapped.
    heading = "document.querySelector('#turn-1 .prose h2').getBoundingClientRect().y"
    await tab.mouse.move(500, 300)
    async with asyncio.timeout(60):
        while await tab.evaluate("scrollY") >= 40:
            await tab.mouse.wheel(0, -400)
            await tab.wait_for_timeout(30)
        # What was asked of the wheel goes on for a moment.
        place, before = (await tab.evaluate("scrollY"), await tab.evaluate(heading)), None
        while place != before:
            await tab.wait_for_timeout(150)
            before = place
            place = await tab.evaluate("scrollY"), await tab.evaluate(heading)
    while await turn(tab, 1).get_attribute("data-live") == "yes":
        await tab.wait_for_timeout(100)
        assert await tab.evaluate("scrollY") == place[0]
        assert await tab.evaluate(heading) == place[1]
    shifts: list[dict[str, Any]] = await tab.evaluate("window.shifts")
    done = [shift for shift in shifts if shift["place"] == "done"]
    assert sum(shift["value"] for shift in done) < 0.02, done
    await expect(tab.locator("#below")).to_be_visible()


async def test_a_reader_at_the_end_stays_at_the_end(tab: Page, served: Served) -> None:
    await start_chat(tab, served, "Write a long one to follow")
    await expect(tab.locator("#turn-1-r1-done")).to_contain_text("Part 3", timeout=60_000)
    for _ in range(8):
        await tab.wait_for_timeout(120)
        # What has come is scrolled to with the next frame, at the pace of this machine.
        await _is_at_the_end(tab)
    await ended(tab, 1)
    await _is_at_the_end(tab)


async def test_who_stops_by_keyboard_and_continues_is_at_the_message_and_at_the_end(
    tab: Page, served: Served
) -> None:
    await start_chat(tab, served, "Write a long one to stop")
    await expect(tab.locator("#turn-1-r1-done")).to_contain_text("Part 3", timeout=60_000)
    await tab.locator("#stop").focus()
    await tab.keyboard.press("Enter")
    section = await ended(tab, 1)
    await expect(tab.locator("#text")).to_be_focused()
    await tab.mouse.move(500, 300)
    async with asyncio.timeout(60):
        while await tab.evaluate(_GAP) < 200:
            await tab.mouse.wheel(0, -100)
            await tab.wait_for_timeout(30)
    # A click of this tool scrolls to what it clicks on.
    button = section.get_by_role("button", name="Continue")
    await button.evaluate("button => button.focus({ preventScroll: true })")
    await tab.keyboard.press("Enter")
    await answer_begun(tab, 2)
    await ended(tab, 2)
    await _is_at_the_end(tab)


async def _is_at_the_end(tab: Page) -> None:
    async with asyncio.timeout(60):
        while await tab.evaluate(_GAP) >= 60:
            await tab.wait_for_timeout(20)


async def test_a_stop_before_the_first_token_and_one_after_a_reload(
    tab: Page, served: Served
) -> None:
    await start_chat(tab, served, "Write a long one emulator:fault=hang_after:0")
    await tab.locator("#stop").click()
    section = await ended(tab, 1)
    await expect(section).to_contain_text("Stopped")
    await send(tab, "Write a long one emulator:pace=0.1")
    await answer_begun(tab, 2)
    await tab.reload()
    await answer_begun(tab, 2)
    async with tab.expect_request("**/stop/") as asked:
        await tab.locator("#stop").click()
    assert (await asked.value).post_data == "turn=2"
    section = await ended(tab, 2)
    await expect(section).to_contain_text("Stopped")
    assert "the last word" not in await section.inner_text()
    assert await shown(tab, 2) == await stored(tab, 2)
    with pytest.raises(Error, match=r"not found|null"):
        await shown(tab, 3)
    await send(tab, "And now?")
    await expect(await ended(tab, 3)).to_contain_text("Yes.")
    assert re.search(r"turn-3", await shown(tab, 3))
