"""An administrator lowers a budget while a turn runs: it counts from the next call."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest
from playwright.async_api import Browser, Page, expect

from tests.e2e.conftest import Serve, Watch, observe, picture
from tests.e2e.people import ended, log_in, say, set_up, start_chat, turn
from tests.e2e.served import Served
from tests.e2e.test_access import judge

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
BUDGETS = """
from tests.support import budget_rows, people_and_turns
budget_rows.site(9 * 10**8, kind="pool", period="day")
people_and_turns.limited(people_and_turns.User.objects.get(pk=1), 5 * 10**7)
"""
MAKE = """
from conversations.models import User
from tests.support.people_and_turns import limited
user = User.objects.create(username='bea')
user.set_password('correct horse battery')
user.save()
limited(user, 90_000_000)
"""
OWN = """
SELECT username, "limit" FROM conversations_budget JOIN conversations_user owner
ON owner.id = user_id WHERE conversations_budget.is_active AND period = 'month'
AND kind = 'per_member' ORDER BY username
"""
PLAYED = "from tests.support.stored_turns import played; played('cleo')"
#: Lists of the admin that must fit a page of 1280 pixels.
LISTS = (
    "budget", "budgetwindow", "ledgerentry", "grant", "reservation", "crossing", "turncap", "user",
    "apicall", "modelprice", "transformation",
)  # fmt: skip


def rows(served: Served, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(f"file:{served.database}?mode=ro", uri=True)) as database:
        return database.execute(sql).fetchall()


def calls(served: Served) -> int:
    return int(str(rows(served, "SELECT count(*) FROM conversations_apicall")[0][0]))


async def test_a_budget_lowered_in_the_admin_stops_a_running_turn_before_its_next_call(
    browser: Browser, page: Page, watch: Watch, serve_app: Serve
) -> None:
    served = serve_app(AGENTWEB_EMULATOR_DELAY_MS="150", AGENTWEB_TITLE_MODEL="off")
    await set_up(page, served)
    served.manage("shell", "-c", MAKE)
    await page.goto(f"{served.url}/admin/conversations/user/2/change/")
    await expect(page.locator("#effective-budgets")).to_contain_text("$0.00 spent of $90.00")
    limit = page.locator("#id_budgets-0-limit")
    await limit.fill("0.000001")
    context = await browser.new_context(
        viewport={"width": 1280, "height": 860}, locale="en-GB", reduced_motion="reduce"
    )
    context.set_default_timeout(60_000)
    person = await context.new_page()
    observe(person, watch)
    await log_in(person, served, "bea")
    await start_chat(person, served, "What time is it in Tokyo?")
    # The first call is on its way: its tool round and the call after it are still to come.
    await expect(turn(person, 1).locator(".status")).to_be_visible()
    await page.get_by_role("button", name="Save and continue editing").click()
    await expect(page.locator(".messagelist")).to_contain_text("was changed successfully")
    section = await ended(person, 1)
    await expect(section.locator(".chip")).to_have_text("Over budget")
    the_turn_ended_whole(served)
    await the_chat_stays_usable(page, person, served, watch)
    await context.close()
    await page.goto("about:blank")
    assert "0 mismatches" in served.manage("verify")
    assert "the ledger agrees" in served.manage("ledger")


def the_turn_ended_whole(served: Served) -> None:
    """One call was made, and each tool use it asked for has its result in the log."""
    assert calls(served) == 1
    found = rows(served, "SELECT finish_reason, error_code FROM conversations_turn")
    assert "budget" in found[0]
    asked, answered = set(), set()
    for (content,) in rows(served, "SELECT content FROM conversations_message"):
        for block in json.loads(str(content)):
            if block["type"] == "tool_use":
                asked.add(block["id"])
            elif block["type"] == "tool_result":
                answered.add(block["tool_use_id"])
                assert "budget" in json.dumps(block)
    assert asked == answered != set()


async def the_chat_stays_usable(page: Page, person: Page, served: Served, watch: Watch) -> None:
    await expect(turn(person, 1)).to_contain_text("What time is it in Tokyo?")
    await say(person, "Hello again")
    await expect(person.get_by_role("alert").filter(has_text="Not sent")).to_be_visible()
    await expect(person.get_by_label("Message", exact=True)).to_have_value("Hello again")
    # The browser tells of the answer that refused it.
    watch.errors.clear()
    assert calls(served) == 1
    await page.get_by_role("link", name="Grant", exact=True).click()
    await page.get_by_label("Amount").fill("25")
    await page.get_by_label("Reason").fill("The report is due today")
    await page.get_by_role("button", name="Preview").click()
    await expect(page.locator(".action-preview")).to_contain_text(
        "$25.00 more for bea, without end."
    )
    await picture(page, "budget admin grant")
    await page.get_by_role("button", name="Yes, do this").click()
    await expect(page.locator(".messagelist")).to_contain_text("$25.00 more were granted.")
    await expect(page.locator("#effective-budgets")).to_contain_text("The report is due today")
    await say(person, "Hello again")
    await expect(await ended(person, 2)).to_contain_text("built-in emulator")
    assert calls(served) > 1


async def test_the_pages_of_budgets_fit_desktop_and_phone_by_day_and_night(
    page: Page, serve_app: Serve
) -> None:
    served = serve_app(AGENTWEB_EMULATOR_DELAY_MS="1")
    await set_up(page, served)
    served.manage("shell", "-c", MAKE)
    served.manage("shell", "-c", BUDGETS)
    await start_chat(page, served, "What time is it in Tokyo?")
    await ended(page, 1)
    await a_limit_is_two_clicks_and_a_field_away(page, served)
    await limits_of_several_people_are_changed_after_a_preview(page, served)
    admin = f"{served.url}/admin/conversations"
    pages = {
        "list": f"{admin}/budget/", "person": f"{admin}/user/1/change/",
        "budget": f"{admin}/budget/3/change/", "grant": f"{admin}/budget/3/grant/?user=1",
        "window": f"{admin}/budgetwindow/1/change/", "import": f"{admin}/budget/import/",
        "ledger": f"{admin}/ledgerentry/", "overview": f"{served.url}/admin/overview/?by=group",
        "context": f"{served.url}/settings/context/",
    }  # fmt: skip
    for width, name in ((1280, "wide"), (390, "phone")):
        await page.set_viewport_size({"width": width, "height": 860})
        for scheme in ("light", "dark"):
            await page.emulate_media(color_scheme=scheme)
            for what, address in pages.items():
                await page.goto(address)
                await picture(page, f"budget admin {what} {name} {scheme}", full_page=True)
                if name == "phone":
                    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await page.set_viewport_size({"width": 1280, "height": 860})
    served.manage("shell", "-c", PLAYED)
    fits = "[...document.querySelectorAll('html, .results, .tabular')]"
    fits += ".every(each => each.scrollWidth <= each.clientWidth)"
    for kind in (*(f"{name}/" for name in LISTS), "user/1/change/"):
        await page.goto(f"{admin}/{kind}")
        assert await page.evaluate(fits), kind
    # What Chromium asks for by itself is asked of a server that is there.
    await page.goto("about:blank")


async def a_limit_is_two_clicks_and_a_field_away(page: Page, served: Served) -> None:
    await page.goto(f"{served.url}/admin/")
    await page.get_by_role("link", name="Spending: who is near a limit").click()
    field = page.get_by_label("Dollars a month for bea")
    await field.fill("5")
    await page.locator("form", has=field).get_by_role("button", name="Set").click()
    await expect(page.locator(".messagelist")).to_contain_text("$5.00 a month for bea")
    assert rows(served, OWN) == [("ada", 50_000_000), ("bea", 5_000_000)]


async def limits_of_several_people_are_changed_after_a_preview(page: Page, served: Served) -> None:
    for name in ("ada", "bea"):
        await page.get_by_label(f"Mark {name}").check()
    await page.get_by_role("button", name="Change those marked").click()
    await expect(page.locator("#content")).to_contain_text("People chosen: 2")
    kind = "/admin/spending/several/"
    found = await judge(page, kind)
    await page.get_by_label("Amount").fill("7")
    await page.get_by_label("Reason").fill("A new term")
    await page.get_by_role("button", name="Preview").click()
    shown = page.locator(".spending")
    await expect(shown).to_contain_text("Their limits together: $55.00 → $14.00 a month.")
    # Judged last as it is on a phone: nobody has to scroll sideways to see what will be.
    found += await judge(page, f"{kind}preview")
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await shown.locator(".sheet-scroll").evaluate(
        "one => one.scrollWidth <= one.clientWidth"
    )
    assert not found, "\n".join(found)
    await page.get_by_role("button", name="Yes, do this").click()
    await expect(page.locator(".messagelist")).to_contain_text("Changed: 2. Skipped: 0.")
    assert rows(served, OWN) == [("ada", 7_000_000), ("bea", 7_000_000)]
