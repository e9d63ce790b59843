"""What is written and not sent waits in the browser for its writer."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from tests.accounts.test_second_factors import code_of
from tests.e2e.conftest import Serve, Watch
from tests.e2e.people import CHAT, NAME, PASSWORD, ended, log_in, set_up, start_chat
from tests.e2e.served import Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
REQUIRE = f"""
from django.contrib.auth.models import Group
from conversations.models import SecondFactorRule, Session
group = Group.objects.create(name="Careful")
User.objects.get(username={NAME!r}).groups.add(group)
SecondFactorRule.objects.create(group=group)
Session.objects.all().delete()
"""
EVE = f"""
eve = User(username="eve")
eve.set_password({PASSWORD!r})
eve.save()
"""


async def log_in_here(page: Page) -> None:
    dialog = page.locator("#session")
    await dialog.locator("[name=username]").fill(NAME)
    await dialog.locator("[name=password]").fill(PASSWORD)
    await dialog.get_by_role("button", name="Log in").click()


async def add_app(page: Page) -> None:
    """Add a factor on the page that the person was sent to."""
    await page.get_by_role("link", name="Add an app").click()
    if await page.locator("[name=secret]").count():
        await page.fill("[name=secret]", PASSWORD)
        await page.get_by_role("button", name="Go on").click()
    key = (await page.locator("#app-key").inner_text()).strip()
    await page.fill("[name=code]", code_of(key))
    await page.get_by_role("button", name="Add the app").click()
    await page.wait_for_url("**/settings/security/codes/")


@pytest.mark.parametrize("place", ["a new chat", "a chat"])
async def test_who_must_add_a_factor_first_loses_no_message(
    place: str, page: Page, serve_app: Serve, watch: Watch
) -> None:
    served = serve_app()
    await set_up(page, served)
    if place == "a chat":
        await start_chat(page, served, "Hello")
        await ended(page, 1)
    else:
        await page.goto(f"{served.url}/c/new/")
    where = page.url
    await page.fill("textarea[name=text]", "A long message")
    served.manage("shell", "-c", REQUIRE)
    await page.locator("#text").press("Enter")
    other = page.locator("#session").get_by_role("link", name="Other ways to log in")
    await expect(other).to_have_attribute("href", re.compile(r"login/\?next=%2Fc%2F.+%2F$"))
    await log_in_here(page)
    onward = page.locator("#session").get_by_role("link", name="Go on")
    # The button that was pressed is gone; the focus stays in the dialog.
    await expect(onward).to_be_focused()
    await onward.click()
    await page.wait_for_url("**/settings/security/")
    await add_app(page)
    await page.goto(where)
    await page.wait_for_url(CHAT)
    await expect(await ended(page, 2 if place == "a chat" else 1)).to_contain_text("A long message")
    await page.goto("about:blank")
    # The answers 401 and 409, which the browser reports.
    watch.errors.clear()


async def become(page: Page, served: Served, name: str) -> None:
    await page.locator("form[action='/accounts/logout/'] button").click()
    await page.wait_for_url("**/accounts/login/**")
    await log_in(page, served, name)
    await page.goto(f"{served.url}/c/new/")


async def test_a_draft_and_its_files_are_shown_to_their_writer_alone(
    page: Page, serve_app: Serve
) -> None:
    served = serve_app()
    await set_up(page, served)
    served.manage("shell", "-c", EVE)
    await page.goto(f"{served.url}/c/new/")
    await page.fill("#text", "A private word")
    letter = {"name": "letter.txt", "mimeType": "text/plain", "buffer": b"Dear Ms Vogel"}
    await page.locator("#file-input").set_input_files([letter])  # type: ignore[list-item]
    await expect(page.locator(".file-chip[data-file]")).to_have_count(1)
    await become(page, served, "eve")
    await expect(page.locator("#text")).to_have_value("")
    await expect(page.locator("#composer-error")).to_be_empty()
    await page.fill("#text", "Of eve")
    await become(page, served, NAME)
    await expect(page.locator("#text")).to_have_value("A private word")
    await expect(page.locator(".file-chip[data-file]")).to_contain_text("letter.txt")
    await become(page, served, "eve")
    await expect(page.locator("#text")).to_have_value("Of eve")


async def fill_form(page: Page, served: Served) -> None:
    await page.goto(f"{served.url}/settings/prompts/new/")
    await page.fill("[name=title]", "Weekly report")
    await page.locator("main [name=text]").fill("Long and careful words")


async def see_it_sent(page: Page, watch: Watch) -> None:
    """Come back from another tab, which is logged in now."""
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await page.wait_for_url("**/settings/prompts/")
    await expect(page.locator("main")).to_contain_text("Weekly report")
    watch.errors.clear()


async def test_a_form_that_is_sent_after_the_session_is_sent_when_its_writer_is_back(
    page: Page, serve_app: Serve, watch: Watch
) -> None:
    """With its file, where it has one; without scripts the log-in leads back to the empty form."""
    served = serve_app()
    await set_up(page, served)
    await fill_form(page, served)
    await page.context.clear_cookies(name="sessionid")
    await page.get_by_role("button", name="Save").click()
    await log_in_here(page)
    await page.wait_for_url("**/settings/prompts/")
    await expect(page.locator("main")).to_contain_text("Weekly report")
    watch.errors.clear()


async def test_a_form_waits_on_its_page_for_a_second_step_in_another_tab(
    page: Page, serve_app: Serve, watch: Watch
) -> None:
    served = serve_app()
    await set_up(page, served)
    await page.goto(f"{served.url}/settings/security/")
    await add_app(page)
    code = await page.locator("main li code").first.inner_text()
    await fill_form(page, served)
    await page.context.clear_cookies(name="sessionid")
    await page.get_by_role("button", name="Save").click()
    await log_in_here(page)
    async with page.context.expect_page() as opened:
        await page.locator("#session").get_by_role("link", name="Go on").click()
    other = await opened.value
    await other.fill("[name=code]", code)
    await other.get_by_role("button", name="Log in").click()
    await other.wait_for_url("**/settings/prompts/new/")
    await see_it_sent(page, watch)


async def test_a_form_waits_on_its_page_for_a_factor_that_is_added_in_another_tab(
    page: Page, serve_app: Serve, watch: Watch
) -> None:
    served = serve_app()
    await set_up(page, served)
    await fill_form(page, served)
    served.manage("shell", "-c", REQUIRE)
    await page.get_by_role("button", name="Save").click()
    await log_in_here(page)
    async with page.context.expect_page() as opened:
        await page.locator("#session").get_by_role("link", name="Go on").click()
    other = await opened.value
    # Back too early: what it lacks is said again, and nothing is sent.
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await expect(page.locator("#session")).to_contain_text("requires a second factor")
    await add_app(other)
    await see_it_sent(page, watch)
