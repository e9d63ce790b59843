"""Mail accounts in memory, and a mailbox of the real server to fill."""

from __future__ import annotations

import imaplib
from dataclasses import dataclass, field, replace
from uuid import uuid4

from tests.support.mail_servers import PASSWORD, MailServer
from tools.mail.accounts import Account, MailAccess, Security, Server


@dataclass
class Mailboxes:
    """The port of the tools, over accounts in memory."""

    access: MailAccess
    accounts: list[Account]
    problems: dict[str, str] = field(default_factory=dict)

    async def names(self) -> list[str]:
        return [account.name for account in self.accounts]

    async def find(self, name: str) -> Account | None:
        return next((each for each in self.accounts if each.name == name), None)

    async def renewed(self, name: str, secret: str) -> None:
        self.accounts = [
            replace(each, secret=secret) if each.name == name else each for each in self.accounts
        ]

    async def used(self, name: str, problem: str) -> None:
        self.problems[name] = problem


@dataclass
class Mailbox:
    """One person's mail on the real server, read and filled by another client."""

    server: MailServer
    account: Account
    access: MailAccess

    def other(self) -> imaplib.IMAP4_SSL:
        """Log in with the standard library's client."""
        client = imaplib.IMAP4_SSL(
            "127.0.0.1", self.server.tls_port, ssl_context=self.server.authority.trusted()
        )
        client.login(self.account.login, PASSWORD)
        return client

    def add(self, *messages: bytes, folder: str = "INBOX", flags: str = "") -> None:
        client = self.other()
        for message in messages:
            assert client.append(folder, flags, "", message)[0] == "OK"  # type: ignore[arg-type]
        client.logout()

    def move(self, folder: str, to: str) -> None:
        """Move every message of a folder, as a person does."""
        client = self.other()
        client.create(f'"{to}"')
        client.select(f'"{folder}"')
        assert client.uid("MOVE", "1:*", f'"{to}"')[0] == "OK"
        client.logout()

    def all(self, folder: str) -> list[bytes]:
        client = self.other()
        client.select(f'"{folder}"', readonly=True)
        uids = client.uid("SEARCH", "ALL")[1][0].split()
        found = [client.uid("FETCH", uid, "(BODY.PEEK[])")[1][0][1] for uid in uids]  # type: ignore[index]
        client.logout()
        return found  # type: ignore[return-value]

    def unseen(self, folder: str = "INBOX") -> int:
        client = self.other()
        client.select(folder, readonly=True)
        found = client.uid("SEARCH", "UNSEEN")[1][0].split()
        client.logout()
        return len(found)


def mailbox_of(server: MailServer, security: Security = "tls") -> Mailbox:
    """Return the mailbox of a new person; the first log-in creates it."""
    port = server.tls_port if security == "tls" else server.starttls_port
    login = f"u{uuid4().hex[:12]}"
    account = Account(
        name="work",
        address=f"{login}@example.org",
        login=login,
        imap=Server("127.0.0.1", port, security),
        secret=PASSWORD,
    )
    access = MailAccess(
        allowed_private=frozenset({f"127.0.0.1:{port}"}),
        tls=server.authority.trusted(),
        deadline=30,
    )
    return Mailbox(server, account, access)


def opened_to(access: MailAccess, *ports: int) -> MailAccess:
    more = {f"127.0.0.1:{port}" for port in ports}
    return replace(access, allowed_private=access.allowed_private | more)
