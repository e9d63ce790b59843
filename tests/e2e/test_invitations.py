"""An invitation in a browser: made in the admin, opened by a stranger, who is in by it."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, Page, expect

from tests.e2e.conftest import Serve, Snap, Watch, observe, picture
from tests.e2e.people import PASSWORD, set_up

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]


async def test_a_link_from_the_admin_makes_an_account(
    page: Page, browser: Browser, serve_app: Serve, snap: Snap, watch: Watch
) -> None:
    served = serve_app()
    await set_up(page, served)
    await page.goto(f"{served.url}/admin/conversations/invitation/add/")
    await page.fill("[name=email]", "ann@example.org")
    await page.get_by_label("Member").check()
    await snap("make an invitation")
    await page.get_by_role("button", name="Save", exact=True).click()
    link = await page.get_by_label("The link").inner_text()
    await snap("the link of an invitation")
    phone = {"width": 390, "height": 780}
    context = await browser.new_context(
        viewport=phone,  # type: ignore[arg-type]
        color_scheme="dark",
        reduced_motion="reduce",
    )
    stranger = await context.new_page()
    observe(stranger, watch)
    await stranger.goto(link)
    await picture(stranger, "an invitation on a phone", full_page=True)
    await stranger.fill("[name=username]", "ann")
    await stranger.fill("[name=password1]", PASSWORD)
    await stranger.fill("[name=password2]", PASSWORD)
    await stranger.get_by_role("button", name="Create and log in").click()
    await stranger.wait_for_url("**/c/new/")
    await context.clear_cookies()
    await stranger.goto(link)
    await expect(stranger.get_by_text("was used before")).to_be_visible()
    await picture(stranger, "an invitation that was used", full_page=True)
    # The answer itself, which the browser reports.
    assert all("410" in error for error in watch.errors)
    watch.errors.clear()
    await context.close()
    await page.goto(f"{served.url}/admin/conversations/invitation/")
    await snap("invitations in the admin")
