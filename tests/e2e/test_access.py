"""WCAG 2.2 AA by axe, on every page that links lead to: light and wide, dark and narrow.

The pages are found by following links, one of each kind, so a page that is added is judged too.
Those of the staff are a test of their own: together they take minutes.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urljoin, urlsplit

import axe_playwright_python
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from tests.e2e import served as app
from tests.e2e.conftest import Watch, artefact
from tests.e2e.people import ended, say, set_up, start_chat, upload
from tests.e2e.served import Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
BAD = {"serious", "critical"}
EVERY: dict[str, Any] = {"type": "tag", "values": TAGS}
#: Rules whose result depends on colours and sizes: all that a second look can find.
SEEN: dict[str, Any] = {
    "type": "rule",
    "values": [
        "color-contrast", "link-in-text-block", "target-size", "scrollable-region-focusable",
    ],
}  # fmt: skip
LOOKS: tuple[tuple[Literal["light", "dark"], int, dict[str, Any]], ...] = (
    ("light", 1280, EVERY),
    ("dark", 390, SEEN),
)
#: Kinds of pages that must be among those found.
WANTED = {
    "/c/new/", "/c/ID/", "/c/ID/menu/", "/c/ID/settings/", "/c/ID/lab/",
    "/c/ID/inspect/calls/N/", "/c/ID/inspect/events/N/", "/search/", "/c/list/", "/trash/",
    "/settings/data/",
}  # fmt: skip
WANTED_OF_STAFF = {
    "/admin/", "/admin/overview/", "/admin/conversations/conversation/", "/review/c/ID/inspect/",
}  # fmt: skip
#: Django's pages, and the inspector's once more: their tables may be wider than a phone.
STAFF = ("/admin/", "/review/")
#: Files, and plain text.
SKIPPED = re.compile(r"/download$|/export\.|\.zip$|\.csv|/logout|/jsi18n|/body/$|/request\.json")
#: Bars that stay while the page scrolls below them are laid where they stand in the page: what they
#: half cover is a matter of the place the page was scrolled to, and no small target.
UNSTUCK = """() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(".dock, .bar, .banner, #notice { position: static !important; }");
  document.adoptedStyleSheets = [sheet];
}"""
#: What is still on its way, or changes its colour, is judged when it has come.
SETTLED = """async () => {
  while (document.querySelector(".htmx-request")) await new Promise(requestAnimationFrame);
  const changes = document.getAnimations().filter((one) => one instanceof CSSTransition);
  await Promise.allSettled(changes.map((one) => one.finished));
}"""
#: A link in a drawing has its address in another place.
LINKS = "all => all.map(a => a.href.baseVal ?? a.href)"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")


def kind_of(url: str) -> str:
    """Name the kind of page: its path, with ids and numbers taken out."""
    path = _UUID.sub("ID", urlsplit(url).path)
    path = re.sub(r"/tools/[^/]+/", "/tools/T/", path)
    path = re.sub(r"/admin/([a-z]+)/([a-z]+)/[^/]+/([a-z]+)/", r"/admin/\1/\2/N/\3/", path)
    # A row is added by the form that it is changed by.
    path = re.sub(r"(/admin/[a-z]+/[a-z]+)/add/$", r"\1/N/change/", path)
    # Django's own pages are the same for each model.
    path = re.sub(r"/admin/[a-z]+/[a-z]+/N/(history|delete)/", r"/admin/A/M/N/\1/", path)
    return re.sub(r"/\d+(\.\.\d+)?(?=/|$)", "/N", path)


async def findings(page: Page, rules: dict[str, Any] = EVERY) -> list[str]:
    """Run axe, which is there, and give what is serious, each with its first place."""
    # Without a preload: it writes sheets of its own into the page, which the CSP refuses.
    options = {"runOnly": rules, "resultTypes": ["violations"], "preload": False}
    # The hint of a list of choices is made by Django's own script.
    where = {"exclude": [[".help-tooltip"]]}
    result: dict[str, Any] = await page.evaluate(
        "([where, options]) => axe.run(where, options)", [where, options]
    )
    return [
        f"{one['impact']} {one['id']}: {one['nodes'][0]['html'][:160]} "
        f"({len(one['nodes'])}) {one['nodes'][0]['failureSummary'][:200]}"
        for one in result["violations"]
        if one["impact"] in BAD
    ]


async def links(page: Page, served: Served) -> list[str]:
    """Give the addresses that the page links to, within the site and without their places."""
    found = await page.eval_on_selector_all("a[href]", LINKS)
    inside = (urljoin(page.url, str(one)).split("#")[0] for one in found)
    return [one for one in inside if one.startswith(served.url) and not SKIPPED.search(one)]


async def judge(page: Page, kind: str) -> list[str]:
    found: list[str] = []
    await page.evaluate(UNSTUCK)
    await page.evaluate(AXE)
    for scheme, width, rules in LOOKS:
        await page.set_viewport_size({"width": width, "height": 860})
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        await page.evaluate(SETTLED)
        wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        found += [f"{kind} {scheme}: {one}" for one in await findings(page, rules)]
        if wide > 0 and not kind.startswith(STAFF):
            found.append(f"{kind} {scheme}: {wide} px wider than the screen")
        if found:
            await page.screenshot(path=artefact(f"access {kind} {scheme}"), full_page=True)
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def used(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Served, str]]:
    """Give an app with a conversation that has everything, and its address."""
    data = tmp_path_factory.mktemp("access") / "data"
    served = app.fork(data, AGENTWEB_POLICY="classic", AGENTWEB_INPUT_TOKEN_BUDGET="3000")
    async with await browser.new_context(locale="en-GB", reduced_motion="reduce") as context:
        page = await context.new_page()
        await set_up(page, served)
        await start_chat(page, served, "Please show me a heading, a list, a table and a code block")
        await ended(page, 1)
        address = page.url
        # Results that are long enough to be shortened, so that there are reductions to look at.
        await upload(page, served, {"notes.txt": "bring milk, " * 1_000})
        await page.goto(address)
        for number in (2, 3, 4):
            await say(page, "read notes.txt")
            await ended(page, number)
    yield served, address
    served.stop()


async def judge_all(page: Page, served: Served, waiting: list[str], *, of_staff: bool) -> set[str]:
    """Follow the links of people's, or of the staff's, pages; give the kinds that were met."""
    left, last, asked, seen = deque(waiting), deque[str](), set[str](), set[str]()
    found: list[str] = []
    while left or last:
        url = (left or last).popleft()
        kind = kind_of(url)
        if kind in asked or kind.startswith(STAFF) != of_staff:
            continue
        asked.add(kind)
        response = await page.goto(url)
        assert response is not None, url
        assert response.ok, f"{url}: {response.status}"
        # Some addresses only lead to a page that has another.
        shown = kind_of(page.url)
        if shown not in seen and shown.startswith(STAFF) == of_staff:
            found += await judge(page, shown)
        seen |= {kind, shown}
        for one in await links(page, served):
            # The form of a row that is there has more on it.
            (last if one.endswith("/add/") else left).append(one)
    assert not found, "\n".join(found)
    return seen


async def test_every_page_passes_axe(page: Page, used: tuple[Served, str], watch: Watch) -> None:
    served, address = used
    await set_up(page, served)
    waiting = [address, f"{served.url}/accounts/login/"]
    assert (seen := await judge_all(page, served, waiting, of_staff=False)) >= WANTED, WANTED - seen
    assert not watch.errors
    found = await judge_missing(page, served)
    watch.errors.clear()  # the page that is not there
    assert not found, "\n".join(found)


async def test_every_page_of_the_staff_passes_axe(page: Page, used: tuple[Served, str]) -> None:
    served, _ = used
    await set_up(page, served)
    waiting = [f"{served.url}/admin/", f"{served.url}/admin/overview/"]
    seen = await judge_all(page, served, waiting, of_staff=True)
    assert seen >= WANTED_OF_STAFF, WANTED_OF_STAFF - seen


async def judge_missing(page: Page, served: Served) -> list[str]:
    await page.goto(f"{served.url}/c/{'0' * 8}-0000-4000-8000-{'0' * 12}/")
    found = await judge(page, "/404")
    await page.context.clear_cookies()
    await page.goto(f"{served.url}/accounts/login/")
    return found + await judge(page, "/accounts/login/")
