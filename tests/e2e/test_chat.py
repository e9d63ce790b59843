"""A person chats: first run, tools, stop, reload in mid-answer, a second tab."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from contextlib import closing

import pytest
from playwright.async_api import Page, expect

from agentweb.edge.sockets import MOST_FRAME
from tests.e2e.conftest import Motion, Serve, Snap, Watch, observe
from tests.e2e.people import ended, say, set_up, start_chat, turn
from tests.e2e.served import Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
#: Of an answer that has begun in earnest.
WORDS = re.compile(r"(\S+\s+){20}")


@pytest.fixture
def motion() -> Motion:
    """Let it all move, as it does for most people."""
    return "no-preference"


def _drafted(served: Served) -> int:
    """Count the characters that a crash would leave."""
    with closing(sqlite3.connect(served.database, timeout=60)) as database:
        found = database.execute("SELECT max(length(text)) FROM conversations_draft")
        return int(found.fetchone()[0] or 0)


async def test_a_first_run_ends_in_an_answered_message(
    page: Page, served: Served, snap: Snap
) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Please show me a heading, a list, a table and a code block")
    section = await ended(page, 1)
    await expect(section.locator(".prose h2")).to_be_visible()
    await expect(section.locator(".prose table")).to_be_visible()
    await expect(section.locator(".prose pre code .k").first).to_be_visible()
    await expect(page.get_by_text("Built-in emulator")).to_be_visible()
    await snap("chat answered")


async def test_the_setup_link_works_once(page: Page, served: Served, watch: Watch) -> None:
    await set_up(page, served)
    response = await page.goto(served.setup_url)
    assert response is not None
    assert response.status == 404
    watch.errors.clear()


async def test_tools_show_their_input_their_result_and_their_time(
    page: Page, served: Served
) -> None:
    await set_up(page, served)
    await start_chat(page, served, "write notes.txt with the text: bring milk")
    section = await ended(page, 1)
    card = section.locator(".tool", has_text="write_file").first
    await expect(card).to_contain_text("notes.txt")
    await expect(card).to_contain_text("ms")
    await say(page, "read notes.txt")
    section = await ended(page, 2)
    card = section.locator(".tool", has_text="read_file").first
    await card.locator("summary").first.click()
    await expect(card).to_contain_text("bring milk")


async def test_a_stopped_answer_is_kept_and_the_chat_goes_on(page: Page, served: Served) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Answer in 3000 words")
    await expect(turn(page, 1).locator(".prose").first).to_have_text(WORDS)
    await page.keyboard.press("Escape")
    section = await ended(page, 1)
    await expect(section).to_contain_text("Stopped")
    kept = await section.locator(".prose").first.inner_text()
    assert 10 < len(kept.split()) < 2900
    await page.reload()
    assert (await turn(page, 1).locator(".prose").first.inner_text()).split() == kept.split()
    await say(page, "Hello again")
    await expect(await ended(page, 2)).to_contain_text("emulator")


async def test_reloads_and_a_second_tab_end_with_the_same_transcript(
    page: Page, served: Served, watch: Watch
) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Answer in 400 words")
    for _ in range(5):
        await page.wait_for_timeout(250)
        await page.reload()
    other = await page.context.new_page()
    observe(other, watch)
    await other.goto(page.url)
    await ended(page, 1)
    await ended(other, 1)
    shown = [await one.locator("#turn-1 .prose").first.inner_text() for one in (page, other)]
    fresh = await page.context.new_page()
    await fresh.goto(page.url)
    shown.append(await fresh.locator("#turn-1 .prose").first.inner_text())
    assert len({" ".join(text.split()) for text in shown}) == 1
    assert len(shown[0].split()) >= 390


async def test_a_turn_longer_than_a_browser_may_send_comes_by_the_socket(
    page: Page, served: Served
) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Hello")
    await ended(page, 1)
    await say(page, "Is this tag closed? " + "<" * 45_000)
    section = await ended(page, 2)
    # As HTML it is four times as long.
    assert len(await section.inner_html()) > MOST_FRAME
    await expect(section.locator(".answer")).not_to_be_empty()


async def test_an_overloaded_api_is_shown_and_then_answered(page: Page, served: Served) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Hello emulator:fault=overloaded:x1")
    section = await ended(page, 1)
    await expect(section.locator(".prose").first).not_to_be_empty()


async def test_a_crash_in_mid_answer_keeps_what_was_shown(
    page: Page, serve_app: Serve, watch: Watch
) -> None:
    first = serve_app()
    await set_up(page, first)
    await start_chat(page, first, "Answer in 3000 words")
    await expect(turn(page, 1).locator(".prose").first).to_have_text(WORDS)
    async with asyncio.timeout(60):
        while _drafted(first) < 300:
            await asyncio.sleep(0.1)
    address = page.url.removeprefix(first.url)
    first.process.kill()
    first.process.wait()
    second = serve_app(first.data)
    await page.goto(second.url + address)  # the cookie holds: same data, same secret
    section = await ended(page, 1)
    await expect(section).to_contain_text("Interrupted")
    assert len((await section.locator(".prose").first.inner_text()).split()) > 10
    await say(page, "Hello again")
    await expect(await ended(page, 2)).to_contain_text("emulator")
    await page.goto("about:blank")
    watch.errors.clear()  # the old page lost its socket
    assert "0 mismatches" in second.manage("verify")
