"""Model and effort beside the message: what a person chooses is what the next request asks for."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.async_api import Browser, Page, Route, expect
from playwright.async_api import Error as PlaywrightError

from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer
from tests.e2e.conftest import Serve, Watch, observe, picture
from tests.e2e.people import CHAT, ended, say, set_up
from tests.e2e.test_access import AXE, findings

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture
def emulator() -> Iterator[EmulatorServer]:
    with server.start(pace=0, record=True) as running:
        yield running


def received(emulator: EmulatorServer) -> list[tuple[str, Any]]:
    """Give model and effort of every request of an answer that the emulator got."""
    bodies = [json.loads(r.body) for r in emulator.emulator.log if r.path == "/v1/messages"]
    return [
        (body["model"], body.get("output_config", {}).get("effort"))
        for body in bodies
        if body.get("tools")
    ]


async def open_menu(page: Page, name: str) -> None:
    await page.locator(f"#{name} > summary").click()
    await expect(page.locator(f"#{name} .panel")).to_be_visible()


async def test_what_is_chosen_is_what_the_next_request_asks_for(
    page: Page, serve_app: Serve, emulator: EmulatorServer, watch: Watch
) -> None:
    served = serve_app(ANTHROPIC_BASE_URL=emulator.url, AGENTWEB_TITLE_MODEL="off")
    await set_up(page, served)
    await page.goto(f"{served.url}/c/new/")
    asked: list[str] = []
    is_answered = asyncio.Event()

    async def answer_late(route: Route) -> None:
        asked.append(route.request.url)
        if len(asked) == 1:
            await is_answered.wait()
        with contextlib.suppress(PlaywrightError):  # the page asks no more
            await route.continue_()

    await page.route("**/c/new/model/**", answer_late)
    await open_menu(page, "effort-menu")
    await page.get_by_role("radio", name="Low").check()
    await open_menu(page, "model-menu")
    # The levels follow the model, and what was chosen stays, also before the choice is answered.
    await page.get_by_role("radio", name="Haiku 4.5").check()
    await expect(page.locator("#effort-menu")).to_have_count(0)
    is_answered.set()
    await page.unroute_all(behavior="wait")
    # htmx writes each request that another one replaced to the console.
    assert {error.split(",")[0] for error in watch.errors} <= {
        "htmx:afterRequest",
        "htmx:sendAbort",
    }
    watch.errors.clear()
    await expect(page.locator("#model-menu > summary")).to_contain_text("Haiku 4.5")
    await expect(page.locator("#effort-menu")).to_have_count(0)
    await page.get_by_role("radio", name="Opus 4.6").check()
    await page.keyboard.press("Escape")
    await open_menu(page, "effort-menu")
    await expect(page.get_by_role("radio", name="Very high")).to_have_count(0)
    await page.get_by_role("radio", name="Low").check()
    await page.fill("textarea[name=text]", "Hello")
    await page.keyboard.press("Enter")
    await page.wait_for_url(CHAT)
    await ended(page, 1)

    # In mid-chat, by the keyboard; another tab of the same chat sees it too.
    other = await page.context.new_page()
    await other.goto(page.url)
    await open_menu(page, "effort-menu")
    await page.get_by_role("radio", name="Low").press("ArrowDown")
    await expect(other.locator("#effort-menu > summary")).to_contain_text("Medium")
    await expect(page.get_by_role("radio", name="Medium")).to_be_focused()
    await page.keyboard.press("Escape")
    await say(page, "And again")
    await ended(page, 2)
    await open_menu(page, "model-menu")
    await page.get_by_role("radio", name="Sonnet 5.5").check()
    await expect(other.locator("#model-menu > summary")).to_contain_text("Sonnet 5.5")
    await say(page, "And now")
    await ended(page, 3)
    assert received(emulator) == [
        ("claude-opus-4-6", "low"),
        ("claude-opus-4-6", "medium"),
        ("claude-sonnet-5-5", "medium"),
    ]
    await page.reload()
    await expect(page.locator("#effort-menu > summary")).to_contain_text("Medium")
    await other.close()


@pytest.mark.parametrize(
    ("theme", "size", "width", "height"),
    [("light", "desk", 1280, 860), ("dark", "phone", 390, 844)],
)
async def test_the_menus_fit_the_page_and_pass_axe(
    browser: Browser, served: Any, theme: Any, size: str, width: int, height: int, watch: Any
) -> None:
    context = await browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=theme,
        locale="en-GB",
        reduced_motion="reduce",
    )
    page = await context.new_page()
    observe(page, watch)
    await set_up(page, served)
    await page.goto(f"{served.url}/c/new/")
    await page.fill("textarea[name=text]", "Hello")
    await page.keyboard.press("Enter")
    await page.wait_for_url(CHAT)
    await ended(page, 1)
    await page.evaluate(AXE)
    for name in ("effort-menu", "model-menu"):
        await open_menu(page, name)
        frame = await page.locator(f"#{name} .panel").bounding_box()
        assert frame is not None
        assert frame["x"] >= 0
        assert frame["x"] + frame["width"] <= width
        assert frame["y"] >= 0
        wide = await page.evaluate("document.scrollingElement.scrollWidth")
        assert wide <= width
        assert await findings(page) == []
        await picture(page, f"choice {name} {size} {theme}")
        await page.locator(f"#{name} > summary").click()
    await context.close()
    assert watch.errors == []


async def test_another_model_goes_on_where_the_chosen_one_declines(
    page: Page, serve_app: Serve
) -> None:
    served = serve_app(AGENTWEB_FALLBACK_MODEL="claude-opus-4-8", AGENTWEB_TITLE_MODEL="off")
    await set_up(page, served)
    await page.goto(f"{served.url}/c/new/")
    await page.fill("textarea[name=text]", "Hello emulator:fault=refusal_partial:x1")
    await page.keyboard.press("Enter")
    await page.wait_for_url(CHAT)
    line = page.locator(".fallback", has_text="Answered by Opus 4.8, because Sonnet 5.5 declined.")
    await expect(line).to_be_visible()
    await ended(page, 1)
    await picture(page, "another model goes on")
    await page.reload()
    await expect(line).to_be_visible()
    await page.goto(f"{page.url}inspect/")
    await expect(page.get_by_text("Opus 4.8, because Sonnet 5.5 declined")).to_be_visible()
    await picture(page, "another model in the inspector")
    await page.goto("about:blank")
    assert "0 mismatches" in served.manage("verify")
