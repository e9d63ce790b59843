"""Two tabs while a budget runs out: each notice once, a banner with the reset time, a grant."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pytest
from playwright.async_api import Page, expect

from tests.e2e.conftest import Serve, Snap, Watch, observe
from tests.e2e.people import NAME, ended, say, set_up, start_chat
from tests.e2e.served import Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
#: Twenty turns a day, for each member of a group; its days begin in Vienna.
MAKE = f"""
from django.contrib.auth.models import Group
from conversations.models import Budget, User
group = Group.objects.create(name="Research")
User.objects.get(username="{NAME}").groups.add(group)
Budget.objects.create(scope="group", group=group, unit="turns", period="day", limit=20,
                      time_zone="Europe/Vienna")
"""
GRANT = """
from conversations.models import Budget
from conversations.budgets.grants import grant_more
grant_more(budget=Budget.objects.get(), amount=20, reason="for the deadline")
"""
#: Writes down what a screen reader is told.
LISTEN = """() => {
  window.heard = [];
  const node = document.querySelector("#limit-announcer");
  new MutationObserver(() => window.heard.push(node.textContent))
    .observe(node, { childList: true, characterData: true, subtree: true });
}"""


def use(served: Served, turns: int) -> None:
    """Have so many turns been made before."""
    with closing(sqlite3.connect(served.database, timeout=60)) as database, database:
        database.execute("UPDATE conversations_budgetwindow SET spent = ?", (turns,))


async def shell(served: Served, text: str) -> None:
    served.manage("shell", "-c", text)


async def ask(page: Page, number: int) -> None:
    await say(page, "Hello again")
    await ended(page, number)


async def test_a_budget_that_runs_out_is_told_in_every_tab_and_a_grant_lifts_it(
    serve_app: Serve, page: Page, watch: Watch, snap: Snap
) -> None:
    served = serve_app()
    await set_up(page, served)
    await shell(served, MAKE)
    other = await page.context.new_page()
    observe(other, watch)
    tabs = (page, other)
    for tab in tabs:
        zone = await tab.context.new_cdp_session(tab)
        await zone.send("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Kathmandu"})
        await start_chat(tab, served, "Hello")
        await ended(tab, 1)
        await expect(tab.locator(".limit-note")).to_have_count(0)
        await tab.evaluate(LISTEN)
    await expect(page.locator("#budget")).to_contain_text("18 turns left")
    await the_composer_is_whole_on_a_phone(page)
    for turns, percent, number in ((9, 50, 2), (15, 80, 3), (18, 95, 4)):
        use(served, turns)
        await ask(page, number)
        for tab in tabs:
            await expect(tab.locator(".limit-note")).to_have_count(1)
            notice = tab.locator(".limit-note", has_text=f"{percent} % of today's budget is used")
            await expect(notice).to_contain_text(f"{turns + 1} turns of 20 turns, from group")
        await page.get_by_role("button", name="Put this notice away").click()
        for tab in tabs:
            await expect(tab.locator(".limit-note")).to_have_count(0)
            assert len(await tab.evaluate("heard")) == (50, 80, 95).index(percent) + 1
    await page.reload()
    await expect(page.locator("#budget")).to_have_text(re.compile("1 turn left"))
    await expect(page.locator(".limit-note")).to_have_count(0)
    await page.evaluate(LISTEN)
    await say(page, "The last one")
    await ended(page, 5)
    await stopped(page, other, snap)
    refused = other.locator("#composer-error")
    await say(other, "Another draft")
    await expect(refused).to_contain_text("Your message is kept here.")
    watch.errors.clear()
    await shell(served, GRANT)
    for tab in tabs:
        await expect(tab.locator(".limit-note.is-over")).to_have_count(0, timeout=60_000)
        await expect(tab.locator("#budget")).to_contain_text("20 turns left")
    await expect(refused).to_be_empty()
    await expect(other.locator("textarea[name=text]")).to_have_value("Another draft")
    await expect(page.locator("textarea[name=text]")).to_have_value("A draft to keep")
    await page.locator("#send").click()
    await ended(page, 6)
    await expect(page.locator("textarea[name=text]")).to_have_value("")


async def the_composer_is_whole_on_a_phone(page: Page) -> None:
    """The budget is shown without a cut, and so are the names of the model and the effort."""
    await page.set_viewport_size({"width": 390, "height": 844})
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    whole = "part => part.clientWidth && part.scrollWidth <= part.clientWidth"
    for part in await page.locator("#budget, .chooser-name").all():
        assert await part.evaluate(whole)
    await page.set_viewport_size({"width": 1280, "height": 860})


async def stopped(page: Page, other: Page, snap: Snap) -> None:
    """The banner says what, of what, whose and until when; what is written stays."""
    for tab in (page, other):
        banner = tab.locator(".limit-note.is-over")
        await expect(banner).to_contain_text("Today's budget is used up.")
        await expect(banner).to_contain_text("20 turns of 20 turns used, from group Research.")
        # Midnight of Vienna is a quarter to four or to five in Kathmandu.
        await expect(banner.locator("time[data-when]")).to_have_text(re.compile(r"0[34]:45$"))
        await expect(banner.locator("time[data-until]")).to_have_text(
            re.compile(r"^in \d+ (hours|minutes|hour|minute)$")
        )
        await expect(banner).to_contain_text("Reading, searching and exporting go on")
        [last] = [one for one in await tab.evaluate("heard") if "used up" in one]
        assert "from group Research" in last
    await expect(page.locator("#send")).to_have_attribute("title", re.compile("^Not now: "))
    await page.fill("textarea[name=text]", "A draft to keep")
    await page.locator("#send").click()
    await expect(page.locator("#composer-error")).to_contain_text("Your message is kept here.")
    await expect(page.locator("textarea[name=text]")).to_have_value("A draft to keep")
    await expect(page.locator("#turn-6")).to_have_count(0)
    await snap("budget used up")
    await the_composer_is_whole_on_a_phone(page)
    await page.reload()
    await expect(page.locator(".limit-note.is-over")).to_be_visible()
    await expect(page.locator("textarea[name=text]")).to_have_value("A draft to keep")
