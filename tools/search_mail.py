"""The tool `search_mail`: find mail in a folder, or list it.

The query is structured, so the model never writes IMAP syntax. The mailbox is not changed: nothing
is marked as read.
"""

from __future__ import annotations

from typing import Annotated

from tools.framework.errors import InputError
from tools.framework.tool import ToolContext, ToolResult, tool
from tools.mail.account_session import open_session
from tools.mail.argument_texts import ACCOUNT, FOLDER
from tools.mail.mailbox import Query, fetch_summaries, search_uids

MOST_HITS = 50


@tool(icon="find", effect="read", results="keep", timeout=90, origin="mail", needs="mail")
async def search_mail(
    context: ToolContext,
    account: Annotated[str, ACCOUNT] = "",
    folder: Annotated[str, FOLDER] = "",
    sender: Annotated[str, "part of the sender's name or address"] = "",
    recipient: Annotated[str, "part of a recipient's name or address"] = "",
    subject: Annotated[str, "words of the subject"] = "",
    text: Annotated[str, "words anywhere in the mail"] = "",
    since: Annotated[str, "first day, like 2026-11-22"] = "",
    before: Annotated[str, "the day after the last one, like 2026-11-23"] = "",
    unread: Annotated[bool, "only mail that was not read"] = False,
    skip: Annotated[int, "leave out so many of the newest matches"] = 0,
    limit: Annotated[int, "most matches to show, up to 50"] = 20,
) -> ToolResult:
    """Search a folder of the user's mail, or list it when nothing is asked for: the newest first,
    with sender, subject and the uid that read_mail takes."""
    if skip < 0 or limit < 1:
        raise InputError("skip must be 0 or more and limit 1 or more.")
    query = Query(sender, recipient, subject, text, since, before, unread)
    async with open_session(context.mail, account) as (chosen, imap):
        name = folder or chosen.folder
        hits = await search_uids(imap, name, query)
        wanted = hits.uids[skip : skip + min(limit, MOST_HITS)]
        lines = await fetch_summaries(imap, wanted)
    head = f"{len(hits.uids):,} found in {name} of {chosen.name}"
    if wanted:
        head += f", newest first, {skip + 1:,} to {skip + len(wanted):,}"
    if skip + len(wanted) < len(hits.uids):
        head += f"; continue with skip={skip + len(wanted)}"
    details = {"account": chosen.name, "folder": name, "found": len(hits.uids)}
    return ToolResult("\n".join([f"[{head}]", *hits.notes, *lines]), details=details)
