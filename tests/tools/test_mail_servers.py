"""Servers that stall, flood, lie or strip the encryption: the call is bounded and says why."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.support.fake_mail import FakeImap
from tests.support.mail_servers import Authority, make_authority
from tests.tools.mailboxes import Mailboxes
from tools.framework.execute import execute_tool
from tools.framework.registry import TOOLS
from tools.framework.tool import ToolContext
from tools.mail.accounts import Account, MailAccess, Server
from tools.mail.errors import LoginError, MailError
from tools.mail.imap import connect_imap

pytestmark = pytest.mark.asyncio
SECRET = "QxCanarySecretQ"


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("tls"), "127.0.0.1")


class FakeServers:
    """Starts fake servers, and makes accounts of them."""

    def __init__(self, authority: Authority) -> None:
        self.authority = authority
        self.fakes: list[FakeImap] = []

    async def fake(self, **how: Any) -> FakeImap:
        self.fakes.append(await FakeImap(self.authority.serving(), **how).start())
        return self.fakes[-1]

    def account(self, fake: FakeImap, **more: Any) -> Account:
        security = "starttls" if fake.is_starttls else "tls"
        server = Server("127.0.0.1", fake.port, security)  # type: ignore[arg-type]
        account = Account("work", "ada@example.org", "ada", server, secret=SECRET)
        return replace(account, **more)

    def access(self, fake: FakeImap, **more: Any) -> MailAccess:
        opened = frozenset({f"127.0.0.1:{fake.port}"})
        access = MailAccess(opened, tls=self.authority.trusted(), deadline=20)
        return replace(access, **more)


@pytest_asyncio.fixture
async def stage(authority: Authority) -> AsyncIterator[FakeServers]:
    made = FakeServers(authority)
    yield made
    for fake in made.fakes:
        assert fake.server is not None
        fake.server.close()


async def ended(stage: FakeServers, fake: FakeImap, *words: bytes, **access: Any) -> str:
    """Run one command, or the log-in only, and return the message of its error."""
    with pytest.raises((MailError, LoginError)) as raised:
        async with connect_imap(stage.account(fake), stage.access(fake, **access)) as imap:
            await imap.command(*words or (b"NOOP",))
    assert SECRET not in repr(raised.value) + str(raised.value.__cause__)
    return str(raised.value)


def answering(data: bytes) -> Any:
    """Act on the first command after the log-in with these bytes and nothing else."""

    async def act(_fake: FakeImap, name: str, _tag: bytes, writer: asyncio.StreamWriter) -> bool:
        if name.startswith(("CAPABILITY", "AUTHENTICATE", "STARTTLS", "LOGIN")):
            return False
        writer.write(data)
        await writer.drain()
        return True

    return act


async def test_a_server_that_stalls_is_left_at_the_deadline(stage: FakeServers) -> None:
    fake = await stage.fake(act=answering(b""))
    assert "took over 0.3 seconds" in await ended(stage, fake, deadline=0.3)


async def test_a_server_that_drips_is_left_at_the_same_deadline(stage: FakeServers) -> None:
    async def drip(_fake: FakeImap, name: str, _tag: bytes, writer: asyncio.StreamWriter) -> bool:
        if name != "NOOP":
            return False
        while not writer.is_closing():
            writer.write(b"* 1 EXISTS\r\n")
            await asyncio.sleep(0.02)
        return True

    fake = await stage.fake(act=drip)
    assert "took over 0.5 seconds" in await ended(stage, fake, deadline=0.5)


@pytest.mark.parametrize("size", [b"9999999999", b"99999999", b"40000000"])
async def test_a_literal_larger_than_there_is_room_for_is_not_taken(
    stage: FakeServers, size: bytes
) -> None:
    fake = await stage.fake(act=answering(b"* 1 FETCH (BODY[] {%s}\r\n" % size + b"x" * 100_000))
    assert "more than was asked for" in await ended(stage, fake)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"* 1 EXISTS\r\n" * 100_000, "does not end"),
        (b"* OK " + b"x" * 2_000_000, "a line over 1,000,000 bytes"),
        (b"* LIST (" * 1 + b"(" * 100 + b"\r\n", "nested too deeply"),
        (b"* LIST )\r\n", "cannot be read"),
        (b'* LIST "open\r\n', "cannot be read"),
        (b"HTTP/1.1 200 OK\r\n", "cannot be read"),
        (b"* BYE go away\r\n", "ended the connection"),
        (b"* 1 FETCH (X {1}\r\ny" + b" {1}\r\nz" * 60 + b")\r\n", "does not end"),
    ],
)
async def test_answers_without_end_or_sense_end_the_connection(
    stage: FakeServers, data: bytes, words: str
) -> None:
    fake = await stage.fake(act=answering(data))
    assert words in await ended(stage, fake)


async def test_a_server_that_hangs_up_is_said_to(stage: FakeServers) -> None:
    async def hang_up(_f: FakeImap, name: str, _tag: bytes, writer: asyncio.StreamWriter) -> bool:
        if name == "NOOP":
            writer.close()
        return name == "NOOP"

    fake = await stage.fake(act=hang_up)
    assert "broke off" in await ended(stage, fake)


@pytest.mark.parametrize(
    "how",
    [
        {"starttls": b"NO not today\r\n"},
        {"starttls": b"BAD what\r\n"},
        {"injected": b"* CAPABILITY IMAP4rev1\r\nA1 OK\r\n"},
        {"greeting": b"* PREAUTH welcome\r\n"},
        {"greeting": b"220 smtp\r\n"},
        {"greeting": b"* OK " + b"x" * 50_000},
        {"greeting": b"* OK hi\r\n" + b"* OK again\r\n" * 100},
    ],
)
async def test_starttls_cannot_be_stripped_or_preceded(
    stage: FakeServers, how: dict[str, Any]
) -> None:
    fake = await stage.fake(is_starttls=True, **how)
    await ended(stage, fake)
    assert fake.credentials == []
    assert not [each for each in fake.commands if each.startswith((b"LOGIN", b"AUTH", b"CAPA"))]


async def test_starttls_goes_on_under_tls(stage: FakeServers) -> None:
    fake = await stage.fake(is_starttls=True)
    async with connect_imap(stage.account(fake), stage.access(fake)) as imap:
        await imap.command(b"NOOP")
    assert fake.commands[:2] == [b"STARTTLS", b"CAPABILITY"]


async def test_a_certificate_that_is_not_trusted_is_refused(
    stage: FakeServers, tmp_path: Path
) -> None:
    fake = await stage.fake()
    credentials = await ended(stage, fake, tls=make_authority(tmp_path, "127.0.0.1").trusted())
    assert "certificate is not valid" in credentials
    assert "certificate is not valid" in await ended(stage, fake, tls=None)
    assert fake.credentials == []


@pytest.mark.parametrize(("names", "days"), [(("other.example",), 2), (("127.0.0.1",), -1)])
async def test_a_certificate_for_another_name_or_time_is_refused(
    tmp_path: Path, names: tuple[str, ...], days: int
) -> None:
    stage = FakeServers(make_authority(tmp_path, *names, days=days))
    fake = await stage.fake()
    assert "certificate is not valid" in await ended(stage, fake)
    assert fake.credentials == []


async def test_a_server_without_tls_on_its_port_gets_no_password(stage: FakeServers) -> None:
    fake = await stage.fake(is_starttls=True)
    account = replace(stage.account(fake), imap=Server("127.0.0.1", fake.port, "tls"))
    with pytest.raises(MailError):
        async with connect_imap(account, stage.access(fake, deadline=2)):
            pass
    assert fake.credentials == []


async def test_a_password_and_a_token_are_given_in_their_own_ways(stage: FakeServers) -> None:
    fake = await stage.fake()
    for auth in ("password", "token"):
        account = replace(stage.account(fake), auth=auth)
        async with connect_imap(account, stage.access(fake)):
            pass
    assert fake.credentials == [
        f"\0ada\0{SECRET}",
        f"user=ada\1auth=Bearer {SECRET}\1\1",
    ]


async def test_an_old_server_gets_a_counted_password(stage: FakeServers) -> None:
    fake = await stage.fake(capability=b"IMAP4rev1")
    account = stage.account(fake, secret='p"a\\s {3} ß')
    async with connect_imap(account, stage.access(fake)):
        pass
    assert 'LOGIN "ada" {12}\r\np"a\\s {3} ß'.encode() in fake.commands
    closed = await stage.fake(capability=b"IMAP4rev1 LOGINDISABLED")
    assert "no way to log in" in await ended(stage, closed)


@pytest.mark.parametrize("capability", [b"IMAP4rev1", b"IMAP4rev1 AUTH=PLAIN"])
async def test_what_a_server_says_to_a_login_is_never_repeated(
    stage: FakeServers, capability: bytes
) -> None:
    refusal = b"NO wrong: LOGIN ada " + SECRET.encode() + b"\r\n"
    fake = await stage.fake(capability=capability, login=refusal)
    assert "refused the user name or the password" in await ended(stage, fake)


async def test_a_refused_token_ends_the_dialogue_in_order(stage: FakeServers) -> None:
    fake = await stage.fake(login=b"NO expired\r\n")
    with pytest.raises(LoginError):
        async with connect_imap(stage.account(fake, auth="token"), stage.access(fake)):
            pass


async def test_a_stopped_turn_ends_the_connection(stage: FakeServers, context: ToolContext) -> None:
    fake = await stage.fake(act=answering(b""))
    mail = Mailboxes(stage.access(fake, deadline=60), [stage.account(fake)])
    own = replace(context, mail=mail)
    running = asyncio.create_task(execute_tool(TOOLS["search_mail"], {}, own))
    while not fake.asked:
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    # The connection is closed: nothing more is asked.
    assert len(fake.asked) == 1
