"""The job search of a person with a mailbox: real mail, real pages, real servers of tools.

The criteria are a file, the openings come in alert mails of a real IMAP server, their pages over
HTTP; one MCP server, over a pipe, rates the companies, another one, over HTTP, knows what is still
open. Three rounds write the report, while the context is compacted and summarised. Each score and
address of the report is then traced to what the tools gave, as the log has it.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from playwright.async_api import Page, expect

from agentweb.demo import job_site
from agentweb.demo.workspace import PROMPT_NAME, PROMPTS, RESULT_NAME
from agentweb.emulator.scenes.jobs.notes import Rank, find_ranks
from agentweb.emulator.server import Server
from tests.e2e.conftest import Serve, Snap
from tests.e2e.people import allow, download, ended, say, set_up, start_chat, upload
from tests.e2e.served import PROJECT, Served
from tests.support import servers
from tests.support.job_alerts import SENDER, make_alerts_prompt, render_alert
from tests.support.job_ranking import expected
from tests.support.mail_servers import PASSWORD, MailServer
from tests.support.paying_summaries import SUMMARY_PAYS
from tests.tools.mailboxes import Mailbox, mailbox_of
from tools.html.to_markdown import html_to_markdown

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
PROGRAM = "tests.e2e.jobservers"


@pytest.fixture(scope="module")
def jobs() -> Iterator[Server]:
    """The small site of job pages, on loopback."""
    running = job_site.start_site()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def board() -> Iterator[int]:
    """The job board, an MCP server over HTTP, on a port of loopback."""
    port = servers.free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", PROGRAM, "board", str(port)],
        cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not servers.is_listening(port):
        assert time.monotonic() < deadline, "the job board did not start"
        time.sleep(0.05)
    yield port
    process.terminate()
    process.wait(timeout=60)


def rows(served: Served, sql: str) -> list[tuple[str, ...]]:
    database = sqlite3.connect(f"file:{served.database}?mode=ro", uri=True)
    try:
        return database.execute(sql).fetchall()
    finally:
        database.close()


async def test_a_job_search_from_the_mailbox_to_a_report_that_can_be_traced(
    page: Page, serve_app: Serve, snap: Snap, jobs: Server, board: int, dovecot: MailServer
) -> None:
    mailbox = mailbox_of(dovecot)
    for number in (1, 2, 3):
        mail = render_alert(number, jobs.url, mailbox.account.address)
        assert len(html_to_markdown(mail.get_content(), "")) > 10_000
        mailbox.add(mail.as_bytes())
    mailbox.add(b"From: Bank <news@bank.example>\r\nSubject: News, page 1\r\n\r\nRates are up.\r\n")
    served = serve_app(
        AGENTWEB_FETCH_PRIVATE_HOSTS=jobs.url.removeprefix("http://"),
        AGENTWEB_MCP_PRIVATE_HOSTS=f"127.0.0.1:{board}",
        AGENTWEB_MAIL_PRIVATE_HOSTS=f"127.0.0.1:{mailbox.account.imap.port}",
        AGENTWEB_MAIL_CA_FILE=str(dovecot.authority.authority),
        AGENTWEB_EMULATOR_DELAY_MS="1",
        AGENTWEB_POLICY="classic",
        AGENTWEB_PROTECTED_TAIL_MESSAGES="2",
        **SUMMARY_PAYS,
    )
    await set_up(page, served)
    await the_person_adds_the_mailbox(page, served, mailbox)
    await the_administrator_adds(
        page, served, "companies", transport="stdio", command=sys.executable,
        argument_lines=f"-m\n{PROGRAM}\ncompanies", environment_lines=f"PYTHONPATH={PROJECT}",
    )  # fmt: skip
    await the_administrator_adds(
        page, served, "board", transport="http", url=f"http://127.0.0.1:{board}/mcp"
    )
    await snap("alerts 1 a server's tools")
    await upload(page, served, {PROMPT_NAME: make_alerts_prompt(SENDER)})
    await start_chat(page, served, PROMPTS[0])
    # Mail was read: whom the model tells anything now, the person allows.
    await allow(page, "fetch_url")
    await snap("alerts 2 asked")
    await allow(page, "mcp__board__status", "mcp__companies__rating")
    await ended(page, 1)
    await snap("alerts 3 first round")
    for number, prompt in enumerate(PROMPTS[1:], 2):
        await say(page, prompt)
        await ended(page, number)
    await snap("alerts 4 refined twice")
    ranks = find_ranks(await download(page, served, RESULT_NAME))
    wanted = expected(3, jobs.url, least=600, remote=True, is_rated=True)
    assert [(rank.score, rank.url) for rank in ranks] == wanted
    the_context_was_reduced(served)
    each_line_is_traced(served, ranks)
    assert mailbox.unseen() == 4
    assert "0 mismatches" in served.manage("verify")


async def the_person_adds_the_mailbox(page: Page, served: Served, mailbox: Mailbox) -> None:
    await page.goto(f"{served.url}/settings/mail/")
    form = page.locator(".mail-form").last
    for name, value in (
        ("name", "work"),
        ("address", mailbox.account.address),
        ("login", mailbox.account.login),
        ("secret", PASSWORD),
        ("imap_host", "127.0.0.1"),
        ("imap_port", str(mailbox.account.imap.port)),
    ):
        await form.locator(f"[name={name}]").fill(value)
    await form.locator("button[type=submit]").click()
    await expect(page.get_by_text("The account works and was added.")).to_be_visible()


async def the_administrator_adds(page: Page, served: Served, name: str, **fields: str) -> None:
    """Add a server, wait until it lists its tool, and approve that as one that reads."""
    await page.goto(f"{served.url}/admin/conversations/mcpserver/add/")
    await page.locator("#id_name").fill(name)
    await page.locator("#id_is_enabled").check()
    await page.locator("#id_transport").select_option(fields.pop("transport"))
    for field, value in fields.items():
        await page.locator(f"#id_{field}").fill(value)
    await page.locator("[name=_continue]").click()
    await page.get_by_role("link", name="Look at its tools and decide").click()
    tool = page.locator(".mcp-tool")
    for _ in range(60):
        if await tool.count():
            break
        await page.wait_for_timeout(500)
        await page.reload()
    await tool.locator("[name=effect]").select_option("read")
    await tool.get_by_role("button", name="Approve as shown").click()
    await expect(tool.locator(".mcp-status")).to_have_text("offered")


def the_context_was_reduced(served: Served) -> None:
    applied = "SELECT DISTINCT kind FROM conversations_transformation WHERE outcome = 'applied'"
    assert {("compaction",), ("summary",)} <= set(rows(served, applied))
    broken = "SELECT count(*) FROM conversations_apiresult WHERE status != 'complete'"
    assert rows(served, broken) == [(0,)]


def each_line_is_traced(served: Served, ranks: list[Rank]) -> None:
    """Find behind each line of the report the page, the rating and the status it rests on."""
    found = rows(
        served,
        "SELECT c.name, c.input, b.text FROM conversations_toolcall c"
        " JOIN conversations_blob b ON b.digest = c.output_id WHERE c.state = 'ok'",
    )
    mails = "\n".join(text for name, _, text in found if name == "read_mail")
    for rank in ranks:
        pages = [text for name, said, text in found if name == "fetch_url" and rank.url in said]
        assert any(f"{rank.rate} EUR per day" in text for text in pages), rank
        assert any(rank.remote in text for text in pages), rank
        assert rank.url in mails
        company = rank.title.rpartition("(")[2].rstrip(")")
        rated = [text for name, said, text in found if name.endswith("rating") and company in said]
        assert any("rating" in text for text in rated), rank
        told = [text for name, said, text in found if name.endswith("status") and rank.url in said]
        assert any("open" in text for text in told), rank
