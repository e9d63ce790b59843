"""One call with one account: chosen, connected, and its outcome kept for the person."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tools.framework.errors import InputError
from tools.mail.accounts import Account, Mailboxes, chosen, problem_of
from tools.mail.imap import Imap, session
from tools.mail.mailbox import Fetched, fetch_message
from tools.mail.tokens import authorised


@asynccontextmanager
async def noted(mail: Mailboxes, name: str) -> AsyncIterator[Account]:
    """Give an account; what goes wrong with it is kept where the person sees it."""
    account = await chosen(mail, name)
    try:
        ready, kept = await authorised(account, mail.access)
        if kept != account.secret:
            await mail.renewed(account.name, kept)
        yield ready
    except InputError:
        # The call was wrong, not the account.
        raise
    except Exception as error:
        await mail.used(account.name, problem_of(error))
        raise
    await mail.used(account.name, "")


@asynccontextmanager
async def using(mail: Mailboxes, name: str) -> AsyncIterator[tuple[Account, Imap]]:
    """Give an account and a session with its server."""
    async with noted(mail, name) as account, session(account, mail.access) as imap:
        yield account, imap


async def fetch_mail(mail: Mailboxes, name: str, folder: str, uid: int) -> Fetched:
    """Read one message of an account by a session of its own."""
    async with using(mail, name) as (account, imap):
        return await fetch_message(imap, account, folder, uid, mail.access.max_bytes)
