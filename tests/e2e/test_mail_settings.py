"""A person adds a mailbox of a real server; the agent reads it and sends what is allowed."""

from __future__ import annotations

from uuid import uuid4

import pytest
from playwright.async_api import Page, expect

from tests.e2e.conftest import Serve, Snap
from tests.e2e.people import ended, say, set_up, start_chat
from tests.support.fake_mail import SmtpSink
from tests.support.mail_servers import PASSWORD, MailServer
from tests.tools.mailboxes import Mailbox, mailbox_of

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
ALERT = (
    b"From: Watch <watch@example.com>\r\nTo: ada@example.org\r\nSubject: Disk full\r\n"
    b"Content-Type: text/html\r\n\r\n<h1>Disk full</h1><p>Node 7 is at 99 %.</p>"
    b'<img src="http://tracker.example/x.png" alt="chart">'
)


async def fill(page: Page, mailbox: Mailbox, password: str) -> None:
    await page.fill("[name=name] >> nth=-1", "work")
    await page.fill("[name=address]", mailbox.account.address)
    await page.fill("[name=login]", mailbox.account.login)
    await page.fill(".mail-form [name=secret]", password)
    await page.fill("[name=imap_host]", "127.0.0.1")
    await page.fill("[name=imap_port]", str(mailbox.account.imap.port))
    await page.click(".mail-form button[type=submit]")


async def test_a_mailbox_is_added_by_a_person_and_read_by_the_agent(
    page: Page, serve_app: Serve, snap: Snap, dovecot: MailServer, watch: object
) -> None:
    mailbox = mailbox_of(dovecot)
    mailbox.add(ALERT)
    served = serve_app(
        AGENTWEB_MAIL_PRIVATE_HOSTS=f"127.0.0.1:{mailbox.account.imap.port}",
        AGENTWEB_MAIL_CA_FILE=str(dovecot.authority.authority),
    )
    await set_up(page, served)
    await start_chat(page, served, 'Call tool read_mail with {"uid": 1}')
    await expect((await ended(page, 1)).get_by_text("not offered to me")).to_be_visible()
    chat = page.url
    await page.goto(f"{served.url}/settings/mail/")
    await snap("mail settings empty")
    wrong = f"QxCanary{uuid4().hex}"
    await fill(page, mailbox, wrong)
    await expect(page.get_by_role("alert")).to_contain_text("refused the user name")
    await snap("mail settings refused")
    await fill(page, mailbox, PASSWORD)
    await expect(page.get_by_text("The account works and was added.")).to_be_visible()
    await snap("mail settings")
    await page.emulate_media(color_scheme="dark")
    await snap("mail settings dark")
    await page.set_viewport_size({"width": 390, "height": 844})
    await snap("mail settings phone dark")
    await page.emulate_media(color_scheme="light")
    await page.locator(".mail-change summary").click()
    await snap("mail settings phone")
    room = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert room <= 0
    await page.set_viewport_size({"width": 1280, "height": 860})
    content = await page.content()
    assert PASSWORD not in content
    assert wrong not in content
    await page.goto(chat)
    await say(page, 'Call tool read_mail with {"uid": 1}')
    turn = await ended(page, 2)
    await expect(turn).to_contain_text("Subject: Disk full")
    await snap("mail read by the agent")
    assert mailbox.unseen() == 1
    watch.errors.clear()  # type: ignore[attr-defined]
    await page.goto(f"{served.url}/settings/mail/")
    await page.get_by_role("button", name="Remove work").click()
    await expect(page.get_by_text("The account was removed")).to_be_visible()
    served.stop()
    kept = served.database.read_bytes() + served.log.read_bytes()
    assert PASSWORD.encode() not in kept
    assert wrong.encode() not in kept


async def test_a_mail_is_sent_when_the_person_has_agreed_and_not_before(
    page: Page, serve_app: Serve, snap: Snap, dovecot: MailServer
) -> None:
    mailbox = mailbox_of(dovecot)
    sink = SmtpSink(dovecot.authority.serving(), password=PASSWORD).start_in_thread()
    ports = (mailbox.account.imap.port, sink.port)
    served = serve_app(
        AGENTWEB_MAIL_PRIVATE_HOSTS=",".join(f"127.0.0.1:{port}" for port in ports),
        AGENTWEB_MAIL_CA_FILE=str(dovecot.authority.authority),
    )
    await set_up(page, served)
    await page.goto(f"{served.url}/settings/mail/")
    await page.fill("[name=smtp_host]", "127.0.0.1")
    await page.fill("[name=smtp_port]", str(sink.port))
    await fill(page, mailbox, PASSWORD)
    await expect(page.get_by_text("The account works and was added.")).to_be_visible()
    words = '{"to": ["bea@example.com"], "subject": "Hello", "body": "Dear Bea"}'
    await start_chat(page, served, f"Call tool send_mail with {words}")
    card = page.locator(".question")
    await expect(card).to_contain_text("Allow this mail to bea@example.com?")
    await expect(card).to_contain_text("Dear Bea")
    await snap("mail asked before sending")
    assert sink.taken == []
    assert mailbox.all("Sent Items") == []
    await card.get_by_role("button", name="Allow once").click()
    await expect(await ended(page, 1)).to_contain_text("Sent to bea@example.com")
    assert [taken.recipients for taken in sink.taken] == [["RCPT TO:<bea@example.com>"]]
    assert len(mailbox.all("Sent Items")) == 1
    await say(page, f"Call tool draft_mail with {words}")
    await expect(await ended(page, 2)).to_contain_text("The draft is in Drafts of work.")
    assert len(sink.taken) == len(mailbox.all("Drafts")) == 1
    # The page would miss the app, which ends first.
    await page.goto("about:blank")
