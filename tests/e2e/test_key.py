"""With a key the app talks to the address it is given, and does not say that answers are played."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.async_api import Page, expect

from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer
from tests.e2e.conftest import Serve
from tests.e2e.people import ended, set_up, start_chat

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
KEY = "sk-canary-7f3a91"


@pytest.fixture
def api() -> Iterator[EmulatorServer]:
    running = server.start(pace=0, record=True)
    yield running
    running.stop()


async def test_a_key_and_an_address_are_honoured_and_the_key_is_never_shown(
    page: Page, serve_app: Serve, api: EmulatorServer
) -> None:
    served = serve_app(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=api.url)
    await set_up(page, served)
    await expect(page.get_by_text("Built-in emulator")).to_have_count(0)
    await start_chat(page, served, "Hello")
    await ended(page, 1)
    assert api.emulator.log
    assert KEY not in await page.content()
    await page.goto(f"{served.url}/admin/")
    assert KEY not in await page.content()
    await page.goto("about:blank")
    assert KEY not in served.log.read_text()
    served.stop()
    assert KEY.encode() not in served.database.read_bytes()
