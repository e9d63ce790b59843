"""A mail account as a value for the tools, and the port that provides it.

The secret is only a field of that value: it is not shown, compared or put into errors, and an
account is opened for one call only.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from tools.framework.outside_access import WebAccess
from tools.mail.errors import NoAccountError

#: tls: encrypted from the first byte. starttls: encrypted after a plain greeting.
Security = Literal["tls", "starttls"]
#: password: an app password. token: an OAuth access token (XOAUTH2). refresh: a refresh token,
#: which a provider exchanges for one.
Auth = Literal["password", "token", "refresh"]
IMAP_PORTS, SMTP_PORTS = frozenset({143, 993}), frozenset({465, 587})


@dataclass(frozen=True, slots=True)
class Server:
    host: str
    port: int
    security: Security = "tls"


@dataclass(frozen=True, slots=True)
class Provider:
    """An OAuth provider, as an administrator set it up."""

    name: str
    token_url: str
    client_id: str
    client_secret: str = field(default="", repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    address: str
    login: str
    imap: Server
    #: None for an account that cannot send
    smtp: Server | None = None
    auth: Auth = "password"
    provider: Provider | None = None
    #: the folder to use when a call names none
    folder: str = "INBOX"
    secret: str = field(default="", repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class MailAccess:
    """What the mail tools may connect to, and their limits."""

    #: "host:port" of servers that may be at loopback or private addresses
    allowed_private: frozenset[str] = frozenset()
    denied_hosts: frozenset[str] = frozenset()
    #: None for the trust store of the machine
    tls: ssl.SSLContext | None = None
    #: seconds for one connection to a server
    deadline: float = 45.0
    connect_timeout: float = 8.0
    #: bytes of one message that are read
    max_bytes: int = 25_000_000

    @property
    def web(self) -> WebAccess:
        """Network access to the providers of tokens."""
        return WebAccess(allowed_private=self.allowed_private, max_bytes=100_000, tls=self.tls)

    @property
    def reach(self) -> WebAccess:
        """The rules of web requests, with the ports of mail."""
        return WebAccess(
            allowed_private=self.allowed_private,
            ports=IMAP_PORTS | SMTP_PORTS,
            denied_hosts=self.denied_hosts,
        )


class Mailboxes(Protocol):
    """The mail accounts of one person."""

    @property
    def access(self) -> MailAccess: ...

    async def names(self) -> Sequence[str]: ...

    async def find(self, name: str) -> Account | None:
        """Return an account with its secret."""

    async def used(self, name: str, problem: str) -> None:
        """Store when an account was used last and what went wrong, "" for nothing."""

    async def renewed(self, name: str, secret: str) -> None:
        """Store the refresh token that a provider gave in place of the old one."""


class NoMailboxes:
    """A person without mail."""

    access = MailAccess()

    async def names(self) -> Sequence[str]:
        return ()

    async def find(self, name: str) -> Account | None:
        return None

    async def used(self, name: str, problem: str) -> None:
        return None

    async def renewed(self, name: str, secret: str) -> None:
        return None


async def choose_account(mail: Mailboxes, name: str) -> Account:
    """Return the account of a name, or the only one for ""; raises NoAccountError."""
    names = await mail.names()
    if not names:
        raise NoAccountError(
            "There is no mail account. The user can add one on the page Settings, Mail."
        )
    if not name and len(names) > 1:
        raise NoAccountError(f"There are several accounts; name one of: {', '.join(names)}.")
    account = await mail.find(name or names[0])
    if account is None:
        raise NoAccountError(f"There is no such account. The accounts are: {', '.join(names)}.")
    return account
