"""A trial of an account: log in, open its default folder, log in to the server for sending."""

from __future__ import annotations

from dataclasses import replace

from tools.framework.errors import ToolError
from tools.mail.accounts import Account, MailAccess
from tools.mail.errors import MailError
from tools.mail.folders import examine_folder
from tools.mail.imap import connect_imap
from tools.mail.oauth import authorise_account
from tools.mail.smtp import check_log_in


async def try_account(account: Account, access: MailAccess) -> Account:
    """Connect as the tools do and return the account to store; raises ToolError."""
    ready, kept = await authorise_account(account, access)
    async with connect_imap(ready, access) as imap:
        await examine_folder(imap, ready.folder)
    if ready.smtp is None:
        return replace(account, secret=kept)
    try:
        await check_log_in(ready, access)
    except ToolError as error:
        raise MailError(f"Reading works, but sending does not: {error}") from error
    return replace(account, secret=kept)
