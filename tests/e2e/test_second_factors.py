"""Passkeys and an authenticator app in a real browser, with Chromium's virtual authenticator."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.accounts.test_second_factors import code_of
from tests.e2e.conftest import Serve, Snap, Watch
from tests.e2e.people import NAME, PASSWORD, set_up
from tests.e2e.served import Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]


async def add_authenticator(page: Page) -> tuple[Any, str]:
    """Give the browser a device with a fingerprint sensor that always agrees."""
    devices = await page.context.new_cdp_session(page)
    await devices.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2", "transport": "internal", "hasResidentKey": True,
        "hasUserVerification": True, "isUserVerified": True, "automaticPresenceSimulation": True,
    }  # fmt: skip
    found = await devices.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    return devices, str(found["authenticatorId"])


async def log_in(page: Page, url: str) -> None:
    await page.goto(f"{url}/accounts/login/")
    await page.fill("[name=username]", NAME)
    await page.fill("[name=password]", PASSWORD)
    await page.get_by_role("button", name="Log in", exact=True).click()


async def log_out(page: Page, url: str) -> None:
    await page.context.clear_cookies()
    await page.goto(f"{url}/accounts/login/")


async def open_security(page: Page, url: str, button: str) -> None:
    """Go to what is asked for, and say who it is."""
    await page.goto(f"{url}/settings/security/")
    await page.get_by_role("link", name=button).click()
    await page.fill("[name=secret]", PASSWORD)
    await page.get_by_role("button", name="Go on").click()


def at_localhost(served: Served) -> str:
    """A browser has passkeys for names alone, never for addresses."""
    return served.url.replace("127.0.0.1", "localhost")


async def test_a_passkey_is_added_lets_in_alone_and_is_the_second_step(
    page: Page, serve_app: Serve, snap: Snap, watch: object
) -> None:
    served = serve_app()
    await set_up(page, served)
    url = at_localhost(served)
    devices, device = await add_authenticator(page)
    await log_in(page, url)
    await page.wait_for_url("**/c/**")
    await open_security(page, url, "Add a passkey")
    await snap("add a passkey")
    await page.get_by_role("button", name="Add the passkey").click()
    await page.wait_for_url("**/settings/security/codes/")
    await snap("recovery codes")
    stored = await devices.send("WebAuthn.getCredentials", {"authenticatorId": device})
    assert [one["isResidentCredential"] for one in stored["credentials"]] == [True]
    await page.goto(f"{url}/settings/security/")
    await expect(page.get_by_text("Passkey 1")).to_be_visible()
    await snap("security")
    # Alone, without name and password.
    await log_out(page, url)
    await snap("log in")
    await page.get_by_role("button", name="Log in with a passkey").click()
    await page.wait_for_url("**/c/**")
    # After the password.
    await log_out(page, url)
    await log_in(page, url)
    await page.wait_for_url("**/accounts/second/")
    await snap("second step")
    await page.get_by_role("button", name="Use a passkey").click()
    await page.wait_for_url("**/c/**")
    # Without the device nobody gets in.
    await devices.send("WebAuthn.clearCredentials", {"authenticatorId": device})
    await log_out(page, url)
    await page.get_by_role("button", name="Log in with a passkey").click()
    await expect(page.get_by_text("The passkey was not used")).to_be_visible()
    await page.goto(f"{url}/usage/")
    assert "/accounts/login/" in page.url


async def test_a_passkey_of_nobody_here_is_refused(
    page: Page, serve_app: Serve, watch: Watch
) -> None:
    served = serve_app()
    await set_up(page, served)
    url = at_localhost(served)
    await add_authenticator(page)
    await log_in(page, url)
    await page.wait_for_url("**/c/**")
    await open_security(page, url, "Add a passkey")
    await page.get_by_role("button", name="Add the passkey").click()
    await page.wait_for_url("**/settings/security/codes/")
    await log_out(page, url)
    closed = f"User.objects.filter(username={NAME!r}).update(is_active=%s)"
    served.manage("shell", "-c", closed % False)
    await page.get_by_role("button", name="Log in with a passkey").click()
    await expect(page.get_by_text("closed by an administrator")).to_be_visible()
    served.manage("shell", "-c", closed % True)
    served.manage("second_factors", NAME, "--remove")
    await page.goto(f"{url}/accounts/login/")
    await page.get_by_role("button", name="Log in with a passkey").click()
    await expect(page.get_by_text("This passkey is not known here")).to_be_visible()
    # The refusal itself, which the browser reports.
    assert all("403" in error for error in watch.errors)
    watch.errors.clear()


async def test_an_app_is_added_by_its_key_and_asked_for(
    page: Page, serve_app: Serve, snap: Snap, watch: object
) -> None:
    served = serve_app()
    await set_up(page, served)
    url = served.url
    await open_security(page, url, "Add an app")
    key = (await page.locator("#app-key").inner_text()).strip()
    await expect(page.get_by_role("img", name="The key as a picture")).to_be_visible()
    await snap("add an app")
    await page.fill("[name=code]", code_of(key))
    await page.get_by_role("button", name="Add the app").click()
    await page.wait_for_url("**/settings/security/codes/")
    code = await page.locator(".codes code").first.inner_text()
    await log_out(page, url)
    await log_in(page, url)
    await page.wait_for_url("**/accounts/second/")
    await page.fill("[name=code]", "000000")
    await page.get_by_role("button", name="Log in").click()
    await expect(page.get_by_role("alert").first).to_be_visible()
    await page.fill("[name=code]", code)
    await page.get_by_role("button", name="Log in").click()
    await page.wait_for_url("**/c/**")
