"""Writing mail: drafts, which stay with the person, and sending, which never goes by itself.

Both give a message an id that is fixed for the call. A draft is put into the folder of drafts only
when no message of that id is there; a mail is handed over only when none is among the sent ones.
"""

from __future__ import annotations

from typing import Annotated, Any

from tools.framework.errors import InputError, ToolError
from tools.framework.tool import ToolContext, ToolResult, tool
from tools.mail.accounts import Account, MailAccess
from tools.mail.compose import Composed, compose, key_of
from tools.mail.folders import folder_for, holds
from tools.mail.imap import Imap, session
from tools.mail.smtp import submit
from tools.mail.use import noted, using
from tools.mail.words import Literal, folder
from tools.mail_reading import ACCOUNT

TO = "bare addresses of the recipients"
CC = "bare addresses of those who get a copy"
REPLY = "Message-ID of the mail this answers, as read_mail shows it"


@tool(effect="keyed", results="keep", timeout=60, needs="mail")
async def draft_mail(
    context: ToolContext,
    to: Annotated[list[str], TO],
    subject: Annotated[str, "one line"],
    body: Annotated[str, "the whole text, plain"],
    account: Annotated[str, ACCOUNT] = "",
    cc: Annotated[list[str] | None, CC] = None,
    reply_to: Annotated[str, REPLY] = "",
) -> ToolResult:
    """Put a mail into the user's folder of drafts, where they can look at it, change it and send it
    themselves. Nothing is sent."""
    said = {"to": to, "cc": cc, "subject": subject, "body": body, "reply_to": reply_to}
    async with using(context.mail, account) as (chosen, imap):
        key = key_of(context.key, account=chosen.name, draft=said)
        mail = _composed(context, chosen, key, to, cc, None, subject, body, reply_to)
        name = await folder_for(imap, "drafts")
        is_new = await _put(imap, name, b"(\\Draft \\Seen)", mail)
    done = "The draft is" if is_new else "The draft was already"
    details = {"account": chosen.name, "folder": name, "message_id": mail.message_id}
    return ToolResult(f"{done} in {name} of {chosen.name}.", details=details)


def recipients_of(arguments: dict[str, Any]) -> str:
    """Say whom a mail with these arguments tells something."""
    named = [each for name in ("to", "cc", "bcc") for each in arguments.get(name) or []]
    return f"mail:{','.join(sorted({str(each).strip().lower() for each in named}))}"


@tool(effect="write", results="keep", timeout=90, needs="mail", destination=recipients_of)
async def send_mail(
    context: ToolContext,
    to: Annotated[list[str], TO],
    subject: Annotated[str, "one line"],
    body: Annotated[str, "the whole text, plain"],
    account: Annotated[str, ACCOUNT] = "",
    cc: Annotated[list[str] | None, CC] = None,
    bcc: Annotated[list[str] | None, "bare addresses of those who get a hidden copy"] = None,
    reply_to: Annotated[str, REPLY] = "",
) -> ToolResult:
    """Send a mail from the user's account, after the user has agreed to it; a copy goes to the
    folder of sent mail."""
    said = {"to": to, "cc": cc, "bcc": bcc, "subject": subject, "body": body, "reply_to": reply_to}
    async with noted(context.mail, account) as chosen:
        key = key_of(context.key, account=chosen.name, sent=said)
        mail = _composed(context, chosen, key, to, cc, bcc, subject, body, reply_to)
        if chosen.smtp is None:
            raise InputError(f"The account {chosen.name} has no server for sending; draft instead.")
        access = context.mail.access
        async with session(chosen, access) as imap:
            if await holds(imap, await folder_for(imap, "sent"), mail.message_id):
                return ToolResult("This very mail was sent already; it was not sent again.")
        await submit(chosen, access, mail.recipients, mail.data)
        kept = await _kept(chosen, access, mail)
    details = {
        "account": chosen.name,
        "recipients": list(mail.recipients),
        "message_id": mail.message_id,
    }
    shown = ", ".join(mail.recipients)
    return ToolResult(f"Sent to {shown}. {kept}", details=details)


def _composed(
    context: ToolContext,
    account: Account,
    key: str,
    to: list[str],
    cc: list[str] | None,
    bcc: list[str] | None,
    subject: str,
    body: str,
    reply_to: str,
) -> Composed:
    if not to:
        raise InputError("A mail needs at least one recipient.")
    return compose(
        sender=account.address, to=to, cc=cc or (), bcc=bcc or (), subject=subject, body=body,
        reply_to=reply_to, now=context.now(), key=key,
    )  # fmt: skip


async def _kept(account: Account, access: MailAccess, mail: Composed) -> str:
    """Put a copy to the sent mail; that it could not be put there does not unsend it."""
    try:
        async with session(account, access) as imap:
            name = await folder_for(imap, "sent")
            await _put(imap, name, b"(\\Seen)", mail)
    except ToolError as error:
        return f"No copy could be kept: {error}"
    return f"A copy is in {name}."


async def _put(imap: Imap, name: str, flags: bytes, mail: Composed) -> bool:
    """Put a message into a folder once; say whether it was new there."""
    if await holds(imap, name, mail.message_id):
        return False
    await imap.command(b"APPEND", folder(name), flags, Literal(mail.data))
    return True
