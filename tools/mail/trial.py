"""Whether an account works: log in, open its usual folder, and greet the server for sending."""

from __future__ import annotations

from dataclasses import replace

from tools.framework.errors import ToolError
from tools.mail.accounts import Account, MailAccess
from tools.mail.errors import MailError
from tools.mail.folders import examine
from tools.mail.imap import session
from tools.mail.smtp import greet
from tools.mail.tokens import authorised


async def try_account(account: Account, access: MailAccess) -> Account:
    """Connect as the tools will and give the account to keep; raises ToolError in plain words."""
    ready, kept = await authorised(account, access)
    async with session(ready, access) as imap:
        await examine(imap, ready.folder)
    if ready.smtp is None:
        return replace(account, secret=kept)
    try:
        await greet(ready, access)
    except ToolError as error:
        raise MailError(f"Reading works, but sending does not: {error}") from error
    return replace(account, secret=kept)
