"""The tool `send_mail`: send a mail after the person has approved it.

The message has an id that is fixed for the call. It is only sent when no message of that id is in
the folder of sent mail, so a repeated call sends nothing twice.
"""

from __future__ import annotations

from typing import Annotated, Any

from tools.framework.errors import InputError, ToolError
from tools.framework.tool import ToolContext, ToolResult, tool
from tools.mail.account_session import open_account
from tools.mail.accounts import Account, MailAccess
from tools.mail.argument_texts import ACCOUNT, CC, REPLY_TO, TO
from tools.mail.compose import Composed, make_key
from tools.mail.folders import find_or_create_folder, has_message
from tools.mail.imap import connect_imap
from tools.mail.outgoing import append_once, compose_mail
from tools.mail.smtp import submit_message


def recipients_of(arguments: dict[str, Any]) -> str:
    """Name the recipients of a mail with these arguments, as the destination of the call."""
    named = [each for name in ("to", "cc", "bcc") for each in arguments.get(name) or []]
    return f"mail:{','.join(sorted({str(each).strip().lower() for each in named}))}"


@tool(
    icon="send",
    effect="write",
    results="keep",
    timeout=90,
    needs="mail",
    destination=recipients_of,
    long_arguments=("body",),
    action="sent mail to {to}: {subject}",
)
async def send_mail(
    context: ToolContext,
    to: Annotated[list[str], TO],
    subject: Annotated[str, "one line"],
    body: Annotated[str, "the whole text, plain"],
    account: Annotated[str, ACCOUNT] = "",
    cc: Annotated[list[str] | None, CC] = None,
    bcc: Annotated[list[str] | None, "bare addresses of those who get a hidden copy"] = None,
    reply_to: Annotated[str, REPLY_TO] = "",
) -> ToolResult:
    """Send a mail from the user's account, after the user has agreed to it; a copy goes to the
    folder of sent mail."""
    content = {
        "to": to,
        "cc": cc,
        "bcc": bcc,
        "subject": subject,
        "body": body,
        "reply_to": reply_to,
    }
    async with open_account(context.mail, account) as chosen:
        key = make_key(context.key, account=chosen.name, sent=content)
        mail = compose_mail(context, chosen, key, to, cc, bcc, subject, body, reply_to)
        if chosen.smtp is None:
            raise InputError(f"The account {chosen.name} has no server for sending; draft instead.")
        access = context.mail.access
        async with connect_imap(chosen, access) as imap:
            if await has_message(imap, await find_or_create_folder(imap, "sent"), mail.message_id):
                return ToolResult("This very mail was sent already; it was not sent again.")
        await submit_message(chosen, access, mail.recipients, mail.data)
        copy = await _keep_copy(chosen, access, mail)
    details = {
        "account": chosen.name,
        "recipients": list(mail.recipients),
        "message_id": mail.message_id,
    }
    shown = ", ".join(mail.recipients)
    return ToolResult(f"Sent to {shown}. {copy}", details=details)


async def _keep_copy(account: Account, access: MailAccess, mail: Composed) -> str:
    """Append a copy to the sent mail; a failure is reported, since the mail has been sent."""
    try:
        async with connect_imap(account, access) as imap:
            name = await find_or_create_folder(imap, "sent")
            await append_once(imap, name, b"(\\Seen)", mail)
    except ToolError as error:
        return f"No copy could be kept: {error}"
    return f"A copy is in {name}."
