"""Messages that wait in the browser: whose they are, which chat they go to, and what stops them."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.e2e.people import CHAT, NAME, ended, log_in, say
from tests.e2e.served import Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
START = "**/c/start/"
BOB = """
from conversations.models import User
User.objects.create_user("bob", email="bob@example.org", password="correct horse battery")
"""


async def open_new(tab: Page, served: Served) -> None:
    await tab.goto(f"{served.url}/c/new/")


async def become(tab: Page, served: Served, name: str) -> None:
    await tab.locator("form[action='/accounts/logout/'] button").first.click()
    await tab.wait_for_url("**/accounts/login/**")
    await log_in(tab, served, name)
    await open_new(tab, served)


async def test_a_kept_message_survives_what_another_person_sends(tab: Page, served: Served) -> None:
    served.manage("shell", "-c", BOB)
    await tab.route(START, lambda route: route.abort())
    await open_new(tab, served)
    await say(tab, "Ada's kept message")
    await expect(tab.locator("#outbox")).to_contain_text("Not sent yet")
    await become(tab, served, "bob")
    await tab.unroute(START)
    await expect(tab.locator("#outbox")).to_be_hidden()
    await say(tab, "Bob asks something")
    await tab.wait_for_url(CHAT)
    await become(tab, served, NAME)
    await tab.wait_for_url(CHAT)
    await expect(await ended(tab, 1)).to_contain_text("Ada's kept message")
