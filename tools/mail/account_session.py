"""One call with one account: choose it, connect, and store the outcome for the person."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tools.mail.accounts import Account, Mailboxes, choose_account
from tools.mail.errors import LoginError, MailError
from tools.mail.imap import Imap, connect_imap
from tools.mail.mailbox import Fetched, fetch_message
from tools.mail.oauth import authorise_account


@asynccontextmanager
async def open_account(mail: Mailboxes, name: str) -> AsyncIterator[Account]:
    """Yield an account that can log in; store what goes wrong with it for the person."""
    account = await choose_account(mail, name)
    try:
        ready, kept = await authorise_account(account, mail.access)
        if kept != account.secret:
            await mail.renewed(account.name, kept)
        yield ready
    except (LoginError, MailError) as error:
        # Any other error is of the call: a folder that is not there, or an argument.
        await mail.used(account.name, str(error))
        raise
    await mail.used(account.name, "")


@asynccontextmanager
async def open_session(mail: Mailboxes, name: str) -> AsyncIterator[tuple[Account, Imap]]:
    """Yield an account and a session with its server."""
    async with open_account(mail, name) as account, connect_imap(account, mail.access) as imap:
        yield account, imap


async def fetch_mail(mail: Mailboxes, name: str, folder: str, uid: int) -> Fetched:
    """Read one message of an account by a session of its own."""
    async with open_session(mail, name) as (account, imap):
        return await fetch_message(imap, account, folder, uid, mail.access.max_bytes)
