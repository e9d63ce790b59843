"""A real browser on the served app; what it complains about fails the test it happened in."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright, expect

from agentweb.bench.renderer_time import FLAGS, find_chromium
from tests.e2e import served as app
from tests.e2e.people import set_up

ARTEFACTS = app.PROJECT / "test-artifacts"
# A busy machine is slow; only what never happens takes as long.
expect.set_options(timeout=60_000)
#: A run beside others takes pictures of nothing but what failed: each costs half a second.
IS_SEEN = "AGENTWEB_TEST_TALLY" not in os.environ
_FAILED = pytest.StashKey[bool]()
_running: list[app.Served] = []


@dataclass(slots=True)
class Watch:
    """What the browser said and asked for during one test."""

    #: Errors of the console and uncaught exceptions; refusals of the CSP are among them.
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @property
    def outside(self) -> list[str]:
        """Requests that left this machine."""
        local = (
            "http://127.0.0.1:",
            "http://localhost:",
            "ws://127.0.0.1:",
            "data:",
            "blob:",
            "about:",
        )
        return [url for url in self.requests if not url.startswith(local)]


Motion = Literal["no-preference", "reduce"]
Serve = Callable[..., app.Served]
Snap = Callable[[str], Awaitable[None]]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Keep that a test failed, for its picture, and show what the server printed."""
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
        report.sections += [(f"served on {one.port}", one.tail()) for one in _running]
    return report


@pytest.fixture(scope="session")
def chromium() -> str:
    """Find Chromium; only a machine of a person may be without."""
    if found := find_chromium():
        return found
    missing = "Chromium was not found: apt install chromium, or set AGENTWEB_CHROMIUM"
    if os.environ.get("CI") == "true":
        pytest.fail(missing)
    pytest.skip(missing)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(chromium: str) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(executable_path=chromium, args=[*FLAGS])
        yield running
        await running.close()


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def motion() -> Motion:
    """Give what the person prefers: painting what moves takes a tenth of what a browser takes."""
    return "reduce"


@pytest_asyncio.fixture(loop_scope="session")
async def page(
    browser: Browser, watch: Watch, motion: Motion, request: pytest.FixtureRequest
) -> AsyncIterator[Page]:
    """Give a page without cookies; clear `watch.errors` where errors are what is tested."""
    context = await browser.new_context(
        viewport={"width": 1280, "height": 860},
        locale="en-GB",
        reduced_motion=motion,
        service_workers="block",
    )
    context.set_default_timeout(60_000)
    page = await context.new_page()
    observe(page, watch)
    yield page
    if request.node.stash.get(_FAILED, False):
        await page.screenshot(path=artefact(f"{request.node.name} failed"))
    await context.close()
    assert watch.errors == []
    assert watch.outside == []


def observe(page: Page, watch: Watch) -> None:
    """Write down what a page says; a second tab of a test is watched with this too."""

    def heard(message: object) -> None:
        if message.type == "error":  # type: ignore[attr-defined]
            watch.errors.append(f"{message.text} ({message.location['url']})")  # type: ignore[attr-defined]

    page.on("console", heard)
    page.on("pageerror", lambda error: watch.errors.append(str(error)))
    page.on("request", lambda request: watch.requests.append(request.url))
    page.on("websocket", lambda socket: watch.requests.append(socket.url))


@pytest.fixture
def snap(page: Page) -> Snap:
    """Keep a picture of the whole page: `await snap("after the summary")`."""
    return partial(picture, page, full_page=True)


async def picture(page: Page, name: str, *, full_page: bool = False) -> None:
    """Keep a picture under test-artifacts/, if this is a run that somebody looks at."""
    if IS_SEEN:
        # A hidden caret is a style of each field, which a swap would copy and the CSP refuse.
        await page.screenshot(path=artefact(name), full_page=full_page, caret="initial")


def artefact(name: str) -> Path:
    ARTEFACTS.mkdir(exist_ok=True)
    return ARTEFACTS / (re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower() + ".png")


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[app.Served]:
    """Give the app that the tests share, first started by this run."""
    running = app.start(tmp_path_factory.mktemp("served") / "data", is_new=True)
    _running.append(running)
    yield running
    _running.remove(running)
    running.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def tab(browser: Browser, served: app.Served) -> AsyncIterator[Page]:
    """Give a page that may lose its server or its network, which the console calls an error."""
    context = await browser.new_context(
        viewport={"width": 1100, "height": 700},
        reduced_motion="reduce",
        locale="en-GB",
        service_workers="block",
    )
    context.set_default_timeout(60_000)
    page = await context.new_page()
    await set_up(page, served)
    yield page
    await context.close()


@pytest.fixture
def serve_app(tmp_path: Path) -> Iterator[Serve]:
    """Start an app of the test's own: `serve_app(AGENTWEB_INPUT_TOKEN_BUDGET="40000")`."""
    mine: list[app.Served] = []

    def start(data: Path | None = None, **extra: str) -> app.Served:
        # A fork has its modules already, from the usual places.
        begin = app.start if "PYTHONPATH" in extra else app.fork
        mine.append(begin(data or tmp_path / f"data-{len(mine)}", **extra))
        _running.append(mine[-1])
        return mine[-1]

    yield start
    for running in mine:
        _running.remove(running)
        running.stop()
