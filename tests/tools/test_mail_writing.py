"""A draft is stored once; a mail is sent in full, once, and under TLS."""

from __future__ import annotations

import asyncio
import email
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from email.policy import default
from typing import Any

import pytest
import pytest_asyncio

from tests.support.fake_mail import SmtpSink
from tests.support.mail_servers import PASSWORD, MailServer
from tests.tools.mailboxes import Mailbox, Mailboxes, mailbox_of, opened_to
from tools.framework.execute import execute_tool
from tools.framework.registry import TOOLS
from tools.framework.tool import ToolContext, ToolResult
from tools.mail.accounts import Server
from tools.mail.smtp import Smtp

pytestmark = pytest.mark.asyncio
MAIL = {"to": ["bea@example.com"], "subject": "Grüße", "body": "Hello\n.\n..dots\nÄ"}
Sink = Callable[..., Awaitable[SmtpSink]]


@pytest.fixture
def mailbox(dovecot: MailServer) -> Mailbox:
    return mailbox_of(dovecot)


@pytest.fixture
def mail(mailbox: Mailbox) -> Mailboxes:
    return Mailboxes(mailbox.access, [mailbox.account])


@pytest.fixture
def own(context: ToolContext, mail: Mailboxes) -> ToolContext:
    return replace(context, mail=mail, key="key of the call")


@pytest_asyncio.fixture
async def sink(dovecot: MailServer, mail: Mailboxes) -> AsyncIterator[Sink]:
    """Start a server for sending and give it to the account."""
    started: list[SmtpSink] = []

    async def start(**how: Any) -> SmtpSink:
        made = SmtpSink(dovecot.authority.serving(), password=PASSWORD, **how)
        started.append(await made.start())
        server = Server("127.0.0.1", made.port, "starttls" if made.is_starttls else "tls")
        mail.accounts[0] = replace(mail.accounts[0], smtp=server)
        mail.access = opened_to(mail.access, made.port)
        return made

    yield start
    for each in started:
        each.server.close()


async def call(context: ToolContext, name: str, **arguments: Any) -> ToolResult:
    return await execute_tool(TOOLS[name], arguments, context)


def read(data: bytes) -> Any:
    return email.message_from_bytes(data, policy=default)


async def test_a_draft_is_put_where_the_person_finds_it(own: ToolContext, mailbox: Mailbox) -> None:
    result = await call(own, "draft_mail", **MAIL, cc=["cy@example.net"], reply_to="<1@x>")
    assert result.content == "The draft is in Drafts of work."
    (data,) = mailbox.all("Drafts")
    draft = read(data)
    assert draft["From"] == mailbox.account.address
    assert (draft["To"], draft["Cc"]) == ("bea@example.com", "cy@example.net")
    assert draft["Subject"] == "Grüße"
    assert draft["In-Reply-To"] == "<1@x>"
    assert draft["Message-ID"] == result.details["message_id"]
    assert draft.get_content().replace("\r\n", "\n") == "Hello\n.\n..dots\nÄ\n"
    assert mailbox.unseen("Drafts") == 0


@pytest.mark.parametrize("key", ["key of the call", ""])
async def test_a_draft_is_put_there_once_however_often_the_call_is_repeated(
    own: ToolContext, mailbox: Mailbox, key: str
) -> None:
    own = replace(own, key=key)
    for _ in range(3):
        result = await call(own, "draft_mail", **MAIL)
        assert not result.is_error
    assert "was already" in str(result.content)
    assert len(mailbox.all("Drafts")) == 1
    await call(replace(own, key=key and "another"), "draft_mail", **MAIL | {"subject": "Other"})
    assert len(mailbox.all("Drafts")) == 2


@pytest.mark.parametrize("folder", ["Sent Items", "Trash"])
async def test_a_draft_that_the_person_has_sent_or_deleted_since_is_not_put_there_again(
    own: ToolContext, mailbox: Mailbox, folder: str
) -> None:
    await call(own, "draft_mail", **MAIL)
    mailbox.move("Drafts", folder)
    again = replace(own, repeats=own.now())
    said = await call(again, "draft_mail", **MAIL)
    assert said.content == f"The draft was put in Drafts of work already; it is in {folder} now."
    assert mailbox.all("Drafts") == []
    await call(replace(again, key="another"), "draft_mail", **MAIL)
    assert len(mailbox.all("Drafts")) == 1


@pytest.mark.parametrize("is_starttls", [False, True])
async def test_a_mail_is_handed_over_whole_and_a_copy_is_kept(
    own: ToolContext, mailbox: Mailbox, sink: Sink, is_starttls: bool
) -> None:
    made = await sink(is_starttls=is_starttls)
    result = await call(own, "send_mail", **MAIL, cc=["cy@example.net"], bcc=["dan@example.net"])
    assert result.content == (
        "Sent to bea@example.com, cy@example.net, dan@example.net. A copy is in Sent Items."
    )
    (taken,) = made.taken
    assert taken.sender == f"MAIL FROM:<{mailbox.account.address}>"
    assert taken.recipients == [
        "RCPT TO:<bea@example.com>", "RCPT TO:<cy@example.net>", "RCPT TO:<dan@example.net>",
    ]  # fmt: skip
    data = taken.data.removesuffix(b".\r\n").replace(b"\r\n..", b"\r\n.")
    assert [data] == mailbox.all("Sent Items")
    assert b"dan@" not in data
    assert read(data).get_content().replace("\r\n", "\n") == "Hello\n.\n..dots\nÄ\n"
    assert made.credentials == [f"\0{mailbox.account.login}\0{PASSWORD}"]


async def test_a_mail_goes_through_servers_that_take_seven_bits(
    own: ToolContext, sink: Sink
) -> None:
    """Eight bits need the server's 8BITMIME, named in the envelope (RFC 6152)."""
    made = await sink()
    await call(own, "send_mail", **MAIL)
    (taken,) = made.taken
    assert taken.data.isascii()
    assert "8BITMIME" not in " ".join(made.lines)


async def test_a_mail_is_sent_once_for_each_call(
    own: ToolContext, mailbox: Mailbox, sink: Sink
) -> None:
    made = await sink()
    await call(own, "send_mail", **MAIL)
    again = await call(own, "send_mail", **MAIL)
    assert "not sent again" in str(again.content)
    assert len(made.taken) == 1
    await call(replace(own, key="another call"), "send_mail", **MAIL)
    assert len(made.taken) == 2
    assert len(mailbox.all("Sent Items")) == 2


async def test_a_refused_recipient_means_that_nobody_gets_it(
    own: ToolContext, mailbox: Mailbox, sink: Sink
) -> None:
    made = await sink(unknown=frozenset({"cy@"}))
    result = await call(own, "send_mail", **MAIL, cc=["cy@example.net"])
    assert result.details["code"] == "mail_refused"
    assert made.taken == []
    assert mailbox.all("Sent Items") == []


async def test_an_unknown_outcome_is_said_to_be_unknown(own: ToolContext, sink: Sink) -> None:
    await sink(breaks_off=True)
    result = await call(own, "send_mail", **MAIL)
    assert "may have been sent" in str(result.content)


async def test_an_answer_that_does_not_come_in_time_is_an_unknown_outcome(
    own: ToolContext, mail: Mailboxes, sink: Sink
) -> None:
    # Until it is long enough for this machine to hand the mail over.
    for deadline in (2, 8, 60):
        made = await sink(stalls=True)
        mail.access = replace(mail.access, deadline=deadline)
        result = await call(own, "send_mail", **MAIL)
        if made.taken:
            break
    assert len(made.taken) == 1
    assert "may have been sent" in str(result.content)


async def test_a_mail_that_was_taken_is_sent_though_the_server_hangs_up_at_once(
    own: ToolContext, mailbox: Mailbox, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    goodbye = Smtp.quit

    async def slowly(self: Smtp) -> None:
        # The end of the connection has arrived before the goodbye is written.
        await asyncio.sleep(0.3)
        await goodbye(self)

    monkeypatch.setattr(Smtp, "quit", slowly)
    made = await sink(hangs_up=True)
    result = await call(own, "send_mail", **MAIL)
    assert not result.is_error
    assert len(made.taken) == len(mailbox.all("Sent Items")) == 1


async def test_without_encryption_nothing_is_said_to_the_server(
    own: ToolContext, sink: Sink
) -> None:
    made = await sink(is_starttls=True, offers_starttls=False)
    result = await call(own, "send_mail", **MAIL)
    assert "offers no encryption" in str(result.content)
    assert made.credentials == made.taken == []
    assert made.lines == ["EHLO agentweb.invalid", "STARTTLS"]


async def test_a_token_is_given_and_a_refused_one_is_not_repeated(
    own: ToolContext, mail: Mailboxes, sink: Sink
) -> None:
    made = await sink()
    made.password = "another"
    result = await call(own, "send_mail", **MAIL)
    assert result.details["code"] == "mail_login"
    assert PASSWORD not in repr((result, mail))
    assert made.taken == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"to": []},
        {"to": ["bea@example.com\r\nRCPT TO:<eve@example.com>"]},
        {"to": ["bea@example.com>\r\nDATA"]},
        {"to": ["Bea <bea@example.com>"]},
        {"to": ["a@b"]},
        {"to": ["ä@example.com"]},
        {"to": ["x" * 260 + "@example.com"]},
        {"to": [f"n{n}@example.com" for n in range(51)]},
        {"subject": "x\r\nBcc: eve@example.com"},
        {"subject": "x" * 501},
        {"reply_to": "<1@x>\r\nBcc: eve@example.com"},
        {"reply_to": "1@x"},
        {"body": "x" * 500_001},
    ],
)
async def test_what_could_be_read_as_more_than_it_says_is_refused(
    own: ToolContext, sink: Sink, wrong: dict[str, Any]
) -> None:
    made = await sink()
    for name in ("send_mail", "draft_mail"):
        result = await call(own, name, **MAIL | wrong)
        assert result.details["code"] == "bad_input"
    assert made.lines == []


async def test_an_account_without_a_server_for_sending_drafts_instead(own: ToolContext) -> None:
    result = await call(own, "send_mail", **MAIL)
    assert "draft instead" in str(result.content)


async def test_sending_names_everybody_it_tells() -> None:
    tool = TOOLS["send_mail"]
    assert tool.effect == "write"
    assert tool.destination is not None
    credentials = {"to": ["B@x.org", "a@x.org"], "cc": None, "bcc": ["c@x.org"]}
    assert tool.destination(credentials) == "mail:a@x.org,b@x.org,c@x.org"
    for name in ("search_mail", "read_mail", "list_mail_folders", "save_attachment"):
        assert TOOLS[name].is_private
        assert TOOLS[name].destination is None
        assert TOOLS[name].needs == "mail"
