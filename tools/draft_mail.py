"""The tool `draft_mail`: put a mail into the folder of drafts; nothing is sent."""

from __future__ import annotations

from typing import Annotated

from tools.framework.tool import ToolContext, ToolResult, tool
from tools.mail.account_session import open_session
from tools.mail.argument_texts import ACCOUNT, CC, REPLY_TO, TO
from tools.mail.compose import make_key
from tools.mail.folders import find_or_create_folder, find_sent_or_deleted
from tools.mail.outgoing import append_once, compose_mail


@tool(
    icon="pen",
    effect="keyed",
    results="keep",
    timeout=60,
    needs="mail",
    action="drafted mail to {to}: {subject}",
    long_arguments=("body",),
)
async def draft_mail(
    context: ToolContext,
    to: Annotated[list[str], TO],
    subject: Annotated[str, "one line"],
    body: Annotated[str, "the whole text, plain"],
    account: Annotated[str, ACCOUNT] = "",
    cc: Annotated[list[str] | None, CC] = None,
    reply_to: Annotated[str, REPLY_TO] = "",
) -> ToolResult:
    """Put a mail into the user's folder of drafts, where they can look at it, change it and send it
    themselves. Nothing is sent."""
    content = {"to": to, "cc": cc, "subject": subject, "body": body, "reply_to": reply_to}
    async with open_session(context.mail, account) as (chosen, imap):
        key = make_key(context.key, account=chosen.name, draft=content)
        mail = compose_mail(context, chosen, key, to, cc, None, subject, body, reply_to)
        name = await find_or_create_folder(imap, "drafts")
        details = {"account": chosen.name, "folder": name, "message_id": mail.message_id}
        if context.repeats is not None and (
            gone := await find_sent_or_deleted(imap, mail.message_id)
        ):
            done = f"The draft was put in {name} of {chosen.name} already; it is in {gone} now."
            return ToolResult(done, details=details)
        is_new = await append_once(imap, name, b"(\\Draft \\Seen)", mail)
    done = "The draft is" if is_new else "The draft was already"
    return ToolResult(f"{done} in {name} of {chosen.name}.", details=details)
