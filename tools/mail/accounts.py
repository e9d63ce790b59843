"""A mail account as the tools are given it, and the port they are given it by.

The secret is part of the value and of nothing else: it is not shown, compared or put into errors,
and an account is opened for one call and let go.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from tools.framework.errors import ToolError
from tools.framework.outside_access import WebAccess
from tools.mail.errors import NoAccountError

#: tls: encrypted from the first byte. starttls: a plain greeting, then the same.
Security = Literal["tls", "starttls"]
#: password: one made for this app. token: an OAuth access token (XOAUTH2). refresh: a refresh
#: token, which a provider turns into one.
Auth = Literal["password", "token", "refresh"]
IMAP_PORTS, SMTP_PORTS = frozenset({143, 993}), frozenset({465, 587})


@dataclass(frozen=True, slots=True)
class Server:
    host: str
    port: int
    security: Security = "tls"


@dataclass(frozen=True, slots=True)
class Provider:
    """Who gives access tokens, as an administrator set it."""

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
    #: None where the account is for reading only
    smtp: Server | None = None
    auth: Auth = "password"
    provider: Provider | None = None
    #: the folder that is meant when none is named
    folder: str = "INBOX"
    secret: str = field(default="", repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class MailAccess:
    """What the mail tools may reach, and how much of it they take."""

    #: "host:port" of servers that may be loopback or private
    allowed_private: frozenset[str] = frozenset()
    denied_hosts: frozenset[str] = frozenset()
    #: None for the machine's own trust store
    tls: ssl.SSLContext | None = None
    #: seconds for everything one call does with a server
    deadline: float = 45.0
    connect_timeout: float = 8.0
    #: bytes of one message that are read
    max_bytes: int = 25_000_000

    @property
    def web(self) -> WebAccess:
        """What a provider of tokens is reached by."""
        return WebAccess(allowed_private=self.allowed_private, max_bytes=100_000, tls=self.tls)

    @property
    def reach(self) -> WebAccess:
        """The same guard as the web's, with the ports of mail."""
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
        """Give an account with its secret."""

    async def used(self, name: str, problem: str) -> None:
        """Keep when an account was used last and what went wrong, "" for nothing."""

    async def renewed(self, name: str, secret: str) -> None:
        """Keep the refresh token that a provider gave in place of the old one."""


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
    """Give the account of a name; "" is the only one there is."""
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


def describe_problem(error: BaseException | None) -> str:
    """Say in the words of the error what to keep as an account's last problem."""
    if error is None:
        return ""
    return str(error) if isinstance(error, ToolError) else "The call was broken off."
