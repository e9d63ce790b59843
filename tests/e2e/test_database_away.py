"""PostgreSQL stops and comes back under an open page: it says so, and is whole again."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from agentweb.emulator import server
from tests.e2e import served as app
from tests.e2e.people import ended, say, set_up, start_chat
from tests.e2e.served import Served
from tests.e2e.talks import shown, stored
from tests.support import prepared_databases, servers
from tests.support.servers import Server

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
WORDS = "The database doesn't answer just now. Your chats are kept; trying again…"
RECONNECT = "() => agentweb.connect()"


@pytest.fixture(scope="module")
def store() -> Iterator[Server]:
    running = servers.start_postgres()
    yield running
    running.discard()


@pytest.fixture(scope="module")
def served(store: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with server.start(pace=0) as api:
        running = app.fork(
            tmp_path_factory.mktemp("away") / "data",
            ANTHROPIC_API_KEY="sk-away",
            ANTHROPIC_BASE_URL=api.url,
            AGENTWEB_TITLE_MODEL="off",
            DATABASE_URL=prepared_databases.postgres(store),
        )
        yield running
        running.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def tab(browser: Browser, served: Served) -> AsyncIterator[Page]:
    """Give a page whose requests may fail, which the console calls an error."""
    context = await browser.new_context(
        viewport={"width": 1100, "height": 700}, reduced_motion="reduce", locale="en-GB"
    )
    context.set_default_timeout(60_000)
    page = await context.new_page()
    await set_up(page, served)
    yield page
    await context.close()


async def test_a_page_says_that_the_database_is_away_and_is_whole_when_it_is_back(
    tab: Page, served: Served, store: Server
) -> None:
    await start_chat(tab, served, "Hello")
    await ended(tab, 1)
    pill = tab.locator("#connection")
    store.stop(signal.SIGINT)
    try:
        await tab.evaluate(RECONNECT)
        await expect(pill).to_have_text(WORDS, timeout=60_000)
        assert await tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    finally:
        store.start()
    await expect(pill).to_be_hidden(timeout=90_000)
    await say(tab, "Are you back?")
    await ended(tab, 2)
    assert await tab.locator(".turn").count() == 2
    for number in (1, 2):
        assert await shown(tab, number) == await stored(tab, number)
