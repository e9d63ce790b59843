"""The reading tools on a real IMAP server: what they find, and that the mailbox is unchanged."""

from __future__ import annotations

from dataclasses import replace
from email.message import EmailMessage
from typing import Any

import pytest

from tests.support.mail_servers import MailServer
from tests.tools.mailboxes import Mailbox, Mailboxes, mailbox_of
from tests.tools.memory import MemoryWorkspace
from tools.framework.execute import execute_tool
from tools.framework.registry import TOOLS
from tools.framework.tool import ToolContext, ToolResult
from tools.mail.accounts import NoMailboxes, Server

pytestmark = pytest.mark.asyncio


@pytest.fixture
def mailbox(dovecot: MailServer) -> Mailbox:
    return mailbox_of(dovecot)


@pytest.fixture
def mail(mailbox: Mailbox) -> Mailboxes:
    return Mailboxes(mailbox.access, [mailbox.account])


@pytest.fixture
def own(context: ToolContext, mail: Mailboxes) -> ToolContext:
    return replace(context, mail=mail)


async def call(context: ToolContext, name: str, **arguments: Any) -> ToolResult:
    return await execute_tool(TOOLS[name], arguments, context)


async def run_tool(context: ToolContext, name: str, **arguments: Any) -> str:
    result = await call(context, name, **arguments)
    assert not result.is_error, result.content
    assert isinstance(result.content, str)
    return result.content


def message(subject: str, text: str = "Hello", sender: str = "bea@example.com") -> EmailMessage:
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = sender, "ada@example.org", subject
    made["Message-ID"] = f"<{abs(hash(subject))}@example.com>"
    made["Date"] = "Sat, 21 Nov 2026 08:00:00 +0000"
    made.set_content(text)
    return made


@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_mail_is_listed_searched_and_read_under_tls(
    dovecot: MailServer, context: ToolContext, security: Any
) -> None:
    mailbox = mailbox_of(dovecot, security)
    mailbox_of_tls = replace(mailbox, account=mailbox.account)
    mailbox_of_tls.add(message("Rechnung Äpfel", "Größe: 4711").as_bytes())
    own = replace(context, mail=Mailboxes(mailbox.access, [mailbox.account]))
    found = await run_tool(own, "search_mail", subject="Äpfel", text="Größe")
    assert "1 found in INBOX of work" in found
    assert (
        "uid 1 (unread) | Sat, 21 Nov 2026 08:00:00 +0000 | bea@example.com | Rechnung Äpfel"
        in (found)
    )
    text = await run_tool(own, "read_mail", uid=1)
    assert "Subject: Rechnung Äpfel" in text
    assert text.endswith("Größe: 4711")
    assert mailbox.unseen() == 1


async def test_folders_have_the_names_that_people_gave_them(
    own: ToolContext, mailbox: Mailbox
) -> None:
    client = mailbox.other()
    client.create('"Gr&APwA3w-e &- \\"mehr\\""')
    client.logout()
    text = await run_tool(own, "list_mail_folders")
    assert "Accounts: work" in text
    assert '- Grüße & "mehr"' in text
    mailbox.add(message("There").as_bytes(), folder='"Gr&APwA3w-e &- \\"mehr\\""')
    assert "There" in await run_tool(own, "search_mail", folder='Grüße & "mehr"')


async def test_a_search_is_narrowed_by_every_field_and_continued(
    own: ToolContext, mailbox: Mailbox
) -> None:
    mailbox.add(
        *(message(f"Number {n}", sender=f"s{n % 2}@example.com").as_bytes() for n in range(5))
    )
    mailbox.add(message("Old").as_bytes(), flags="\\Seen")
    assert "6 found" in await run_tool(own, "search_mail")
    assert "5 found" in await run_tool(own, "search_mail", unread=True)
    assert "2 found" in await run_tool(own, "search_mail", sender="s1@")
    assert "6 found" in await run_tool(own, "search_mail", recipient="ada@example.org")
    assert "0 found" in await run_tool(own, "search_mail", before="2020-01-01")
    assert "6 found" in await run_tool(own, "search_mail", since="2020-01-01")
    first = await run_tool(own, "search_mail", limit=4)
    assert "newest first, 1 to 4; continue with skip=4]" in first
    assert first.index("uid 6") < first.index("uid 5") < first.index("uid 3")
    rest = await run_tool(own, "search_mail", limit=4, skip=4)
    assert [line[:5] for line in rest.splitlines()[1:]] == ["uid 2", "uid 1"]


async def test_a_long_mail_is_read_in_ranges_without_a_gap(
    own: ToolContext, mailbox: Mailbox
) -> None:
    lines = "\n".join(f"alert {n}: the disk is at {n} %" for n in range(1_500))
    mailbox.add(message("Alert", lines).as_bytes())
    first = await run_tool(own, "read_mail", uid=1)
    assert "characters 0 to 20,000 of" in first
    assert "continue with start=20000" in first
    second = await run_tool(own, "read_mail", uid=1, start=20_000, length=50_000)
    assert first.split("\n\n", 1)[1] + second.split("\n\n", 1)[1] == lines
    assert (await call(own, "read_mail", uid=1, start=10**6)).details["code"] == "bad_input"


async def test_an_attachment_becomes_a_file_of_the_workspace(
    own: ToolContext, mailbox: Mailbox
) -> None:
    made = message("Report")
    made.add_attachment(
        b"a,b\n1,2\n", maintype="text", subtype="csv", filename="../../etc/re port.csv"
    )
    made.add_attachment(b"PK\3\4", maintype="application", subtype="zip", filename="CON")
    mailbox.add(made.as_bytes())
    text = await run_tool(own, "read_mail", uid=1)
    assert "(text/csv, 8 bytes)" in text
    assert "2. 'CON' (application/zip, 4 bytes)" in text
    saved = await run_tool(own, "save_attachment", uid=1, number=1)
    assert "mail/1/1-re port.csv (8 bytes)" in saved
    assert own.workspace.read("mail/1/1-re port.csv") == b"a,b\n1,2\n"
    await run_tool(own, "save_attachment", uid=1, number=2, path="archive.zip")
    assert own.workspace.read("archive.zip") == b"PK\3\4"
    missing = await call(own, "save_attachment", uid=1, number=3)
    assert missing.is_error
    assert "the mail's attachments are: 1, 2" in str(missing.content)
    escaping = await call(own, "save_attachment", uid=1, number=1, path="../x")
    assert escaping.details["code"] == "path_refused"


async def test_an_attachment_that_a_repeated_call_may_have_saved_replaces_no_change_of_others(
    own: ToolContext, workspace: MemoryWorkspace, mailbox: Mailbox
) -> None:
    made = message("Report")
    made.add_attachment(b"a,b\n", maintype="text", subtype="csv", filename="a.csv")
    mailbox.add(made.as_bytes())
    own = replace(own, key="key of the call")
    await run_tool(own, "save_attachment", uid=1, number=1, path="a.csv")
    again = replace(own, repeats=own.now())
    said = await run_tool(again, "save_attachment", uid=1, number=1, path="a.csv")
    assert said == "Saved 'a.csv' as a.csv already (4 bytes)."
    workspace.write("a.csv", b"a,b\n1,2\n")
    workspace.changed["a.csv"] = own.now()
    refused = await call(again, "save_attachment", uid=1, number=1, path="a.csv")
    assert refused.details["code"] == "file_changed"
    assert workspace.read("a.csv") == b"a,b\n1,2\n"
    await run_tool(again, "save_attachment", uid=1, number=1, path="b.csv")
    assert workspace.done["b.csv"] == own.key


async def test_an_attachment_over_the_quota_is_refused(own: ToolContext, mailbox: Mailbox) -> None:
    made = message("Big")
    made.add_attachment(b"x" * 6_000, maintype="application", subtype="zip", filename="x.zip")
    mailbox.add(made.as_bytes())
    assert (await call(own, "save_attachment", uid=1, number=1)).details["code"] == "quota"


async def test_only_the_start_of_a_huge_mail_is_read_and_that_is_said(
    own: ToolContext, mail: Mailboxes, mailbox: Mailbox
) -> None:
    mail.access = replace(mail.access, max_bytes=10_000)
    mailbox.add(message("Huge", "x" * 70 + "\n" + ("y" * 70 + "\n") * 1_000).as_bytes())
    text = await run_tool(own, "read_mail", uid=1)
    assert "Only the first 10,000 of its" in text


async def test_what_is_not_there_is_said_and_no_problem_of_the_account(
    own: ToolContext, mail: Mailboxes
) -> None:
    missing = await call(own, "read_mail", uid=99)
    assert missing.details["code"] == "mail_missing"
    nowhere = await call(own, "search_mail", folder="Nowhere")
    assert nowhere.details["code"] == "mail_refused"
    assert "'Nowhere' could not be opened" in str(nowhere.content)
    wrong = await call(own, "search_mail", account="private")
    assert "The accounts are: work." in str(wrong.content)
    assert (await call(own, "read_mail", uid=0)).details["code"] == "bad_input"
    assert mail.problems == {}


async def test_without_an_account_the_tools_say_where_one_is_added(context: ToolContext) -> None:
    own = replace(context, mail=NoMailboxes())
    result = await call(own, "search_mail")
    assert result.details["code"] == "no_mail_account"
    assert "Settings, Mail" in str(result.content)


async def test_of_several_accounts_one_is_named(own: ToolContext, mail: Mailboxes) -> None:
    mail.accounts.append(replace(mail.accounts[0], name="home", login="another"))
    unclear = await call(own, "search_mail")
    assert "name one of: work, home" in str(unclear.content)
    assert "of home" in await run_tool(own, "search_mail", account="home")


async def test_a_wrong_password_is_said_and_kept_and_never_shown(
    own: ToolContext, mail: Mailboxes
) -> None:
    mail.accounts[0] = replace(mail.accounts[0], secret="QxCanarySecretQ")
    result = await call(own, "search_mail")
    assert result.details["code"] == "mail_login"
    assert "app password" in mail.problems["work"]
    assert "QxCanary" not in repr((result, mail))
    mail.accounts[0] = replace(mail.accounts[0], secret="")


async def test_what_worked_clears_the_last_problem(own: ToolContext, mail: Mailboxes) -> None:
    mail.problems["work"] = "something"
    await run_tool(own, "search_mail")
    assert mail.problems == {"work": ""}


async def test_a_server_on_a_private_address_is_refused_unless_it_is_opened(
    own: ToolContext, mail: Mailboxes
) -> None:
    port = mail.accounts[0].imap.port
    mail.access = replace(mail.access, allowed_private=frozenset())
    for host in ("127.0.0.1", "localhost", "::1", "10.0.0.1", "169.254.169.254"):
        mail.accounts[0] = replace(mail.accounts[0], imap=Server(host, 993))
        result = await call(own, "search_mail")
        assert result.details["code"] == "mail_failed", host
        assert "not on the public internet" in str(result.content)
    mail.accounts[0] = replace(mail.accounts[0], imap=Server("imap.example.org", port))
    assert "is not open to tools" in str((await call(own, "search_mail")).content)
