"""The job search from end to end: real tools, files, pages and admin; only the model is played.

The context passes 40,000 and 80,000 tokens, the numbers of the preset `classic`, so tool results
are compacted and a summary is built; afterwards the agent still answers from what was cut.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from agentweb.demo import job_site
from agentweb.demo.openings import make_opening
from agentweb.demo.workspace import PROMPTS, RESULT_NAME, list_workspace_files
from agentweb.emulator.server import Server
from tests.e2e.conftest import Serve, picture
from tests.e2e.people import allow, download, ended, say, set_up, start_chat, upload
from tests.e2e.served import Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture(scope="module")
def jobs() -> Iterator[Server]:
    """The small site of job pages, on loopback."""
    running = job_site.start_site()
    yield running
    running.stop()


def rows(served: Served, sql: str) -> list[tuple[object, ...]]:
    database = sqlite3.connect(f"file:{served.database}?mode=ro", uri=True)
    try:
        return database.execute(sql).fetchall()
    finally:
        database.close()


async def test_the_job_search_from_the_prompt_to_the_audit(
    page: Page, serve_app: Serve, jobs: Server
) -> None:
    port = jobs.url.rsplit(":", 1)[1]
    served = serve_app(
        AGENTWEB_FETCH_PRIVATE_HOSTS=f"127.0.0.1:{port}",
        AGENTWEB_EMULATOR_DELAY_MS="1",
        AGENTWEB_POLICY="classic",
        # Its prices rise above 100,000 tokens, so a summary pays at once.
        AGENTWEB_MODEL="claude-haiku-5-5",
    )
    await set_up(page, served)
    await upload(page, served, list_workspace_files(job_site.make_list_url(jobs.url)))
    await start_chat(page, served, PROMPTS[0])
    # A file was read: whom the model tells anything now, the person allows.
    await allow(page, "fetch_url")
    address = page.url
    await ended(page, 1)
    await picture(page, "scenario 1 first round")
    for number, prompt in enumerate(PROMPTS[1:], 2):
        await say(page, prompt)
        await ended(page, number)
    await picture(page, "scenario 2 refined twice")
    chat = page.url
    the_report_is_written(await download(page, served, RESULT_NAME), jobs)
    await page.goto(chat)
    await the_context_was_compacted_and_summarised(page, served)
    await what_was_cut_is_still_known(page, served)
    await picture(page, "scenario 3 questions")
    await the_markers_lead_to_what_changed(page)
    await the_admin_shows_each_step(page, served)
    await page.goto("about:blank")
    verified_and_then_not(served)
    assert address


def the_report_is_written(report: str, jobs: Server) -> None:
    found = re.findall(r"^\| *\d+ *\|.*\| *(http\S+) *\|", report, re.MULTILINE)
    assert len(found) >= 3
    assert all(url.startswith(f"{jobs.url}/jobs/p") for url in found)


async def the_context_was_compacted_and_summarised(page: Page, served: Served) -> None:
    applied = rows(
        served,
        "SELECT kind, number, threshold FROM conversations_transformation"
        " WHERE outcome = 'applied' ORDER BY seq",
    )
    kinds = [kind for kind, _, _ in applied]
    assert "compaction" in kinds
    assert "summary" in kinds
    assert {t for k, _, t in applied if k == "compaction"} == {40_000}
    assert {t for k, _, t in applied if k == "summary"} == {80_000}
    assert all(int(str(n)) > int(str(t)) for k, n, t in applied if k != "rebind")
    await expect(page.locator(".marker").first).to_be_visible()
    sent = rows(served, "SELECT count(*) FROM conversations_apiresult WHERE status != 'complete'")
    assert sent == [(0,)]


async def what_was_cut_is_still_known(page: Page, served: Served) -> None:
    await say(page, "What is the rubric?")
    answer = await ended(page, 4)
    for share in ("30", "20", "25"):
        await expect(answer).to_contain_text(share)
    await say(page, "What was the URL and score of the best job?")
    await expect(await ended(page, 5)).to_contain_text("/jobs/p")
    cut = make_opening(1, 3)
    await say(page, f"What did the page of {cut.title} say about training?")
    await expect(await ended(page, 6)).to_contain_text(f"{cut.training_days}")
    recalled = rows(
        served,
        "SELECT t.number FROM conversations_toolcall c JOIN conversations_turn t ON t.id=c.turn_id"
        " WHERE c.name = 'recall' AND c.state = 'ok'",
    )
    assert (6,) in recalled


async def the_markers_lead_to_what_changed(page: Page) -> None:
    link = page.locator(".marker a").first
    href = await link.get_attribute("href")
    chat = page.url
    await page.goto(re.sub(r"/c/.*", str(href), chat))
    await expect(page.locator("main")).to_contain_text("40,000")
    await expect(page.locator("main")).to_contain_text("recall")
    await picture(page, "scenario 4 what changed")


async def the_admin_shows_each_step(page: Page, served: Served) -> None:
    await page.goto(f"{served.url}/admin/conversations/transformation/")
    await picture(page, "scenario 5 admin transformations")
    await expect(page.locator("#result_list tbody tr").first).to_be_visible()
    for kind, word in (("compaction", "Compacted"), ("summary", "Summarised")):
        [(number,)] = rows(
            served,
            f"SELECT max(id) FROM conversations_transformation WHERE kind='{kind}'"
            " AND outcome='applied'",
        )
        await page.goto(f"{served.url}/admin/conversations/transformation/{number}/change/")
        await expect(page.locator("#content")).to_contain_text(word)
        await picture(page, f"scenario 6 admin {kind}")
    [(call,)] = rows(served, "SELECT max(id) FROM conversations_apicall WHERE purpose='reply'")
    await page.goto(f"{served.url}/admin/conversations/apicall/{call}/change/")
    await expect(page.locator(".proof.matches")).to_be_visible()
    await picture(page, "scenario 7 admin call")


def verified_and_then_not(served: Served) -> None:
    assert "0 mismatches" in served.manage("verify")
    served.stop()
    database = sqlite3.connect(served.database)
    trigger = "conversations_message_keep_update"
    database.execute(f"DROP TRIGGER {trigger}")
    database.execute(
        "UPDATE conversations_message SET content ="
        " replace(content, 'search-prompt', 'search-Prompt') WHERE seq = 1"
    )
    database.commit()
    database.close()
    with pytest.raises(AssertionError, match="message"):
        served.manage("verify")


@pytest_asyncio.fixture(loop_scope="session")
async def phone(browser: Browser) -> AsyncIterator[Page]:
    context = await browser.new_context(
        viewport={"width": 390, "height": 844}, color_scheme="dark", reduced_motion="reduce"
    )
    yield await context.new_page()
    await context.close()


async def test_the_chat_fits_a_phone(phone: Page, served: Served) -> None:
    await set_up(phone, served)
    await start_chat(phone, served, "Please show me a table and a code block")
    await ended(phone, 1)
    await picture(phone, "phone dark")
    width = await phone.evaluate("document.documentElement.scrollWidth")
    assert width <= 390
    # The banner is longest in German.
    await phone.set_extra_http_headers({"Accept-Language": "de"})
    await phone.reload()
    banner = phone.locator(".banner")
    await expect(banner).to_contain_text("Eingebauter Emulator")
    assert await banner.evaluate(
        "one => one.scrollWidth <= one.clientWidth && one.scrollHeight <= one.clientHeight"
    )
