"""The tool `save_attachment`: an attachment of a mail becomes a file of the workspace."""

from __future__ import annotations

import asyncio
from typing import Annotated

from tools.framework.clean_text import quote
from tools.framework.errors import InputError
from tools.framework.tool import ToolContext, ToolResult, tool
from tools.isolation.isolated_calls import run_isolated
from tools.mail.account_session import fetch_mail
from tools.mail.argument_texts import ACCOUNT, FOLDER, UID
from tools.mail.message import extract_attachment
from tools.mail.naming import attachment_path
from tools.workspace.workspace import is_done_before


@tool(
    icon="clip",
    effect="keyed",
    results="keep",
    timeout=120,
    origin="mail",
    needs="mail",
    action="saved attachment {number} of mail {uid} {path}",
)
async def save_attachment(
    context: ToolContext,
    uid: Annotated[int, UID],
    number: Annotated[int, "number of the attachment, as read_mail lists it"],
    account: Annotated[str, ACCOUNT] = "",
    folder: Annotated[str, FOLDER] = "",
    path: Annotated[str, "file to write in the workspace; empty for mail/<uid>/<its name>"] = "",
) -> ToolResult:
    """Save an attachment of a mail as a file of the user's workspace, where read_file reads it."""
    fetched = await fetch_mail(context.mail, account, folder, uid)
    attachments = {each.number: each for each in fetched.mail.attachments}
    if number not in attachments:
        known = ", ".join(map(str, attachments)) or "none"
        raise InputError(f"There is no attachment {number}; the mail's attachments are: {known}.")
    attachment = attachments[number]
    target = path or attachment_path(uid, attachment)
    data = await run_isolated(extract_attachment, fetched.data, number)
    workspace, key, again = context.workspace, context.key, ""
    if context.repeats is not None and await asyncio.to_thread(
        is_done_before, workspace, target, key, context.repeats
    ):
        again = " already"
    else:
        await asyncio.to_thread(workspace.write, target, data, key=key)
    size = len(data)
    details = {"path": target, "bytes": size, "content_type": attachment.content_type}
    notes = "".join(f" {note}" for note in fetched.mail.notes if "bytes were read" in note)
    message = f"Saved {quote(attachment.name)} as {target}{again} ({size:,} bytes).{notes}"
    return ToolResult(message, details=details)
